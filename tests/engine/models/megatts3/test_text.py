from __future__ import annotations

import sys
from types import ModuleType

import pytest

from paretone.errors import TextError
from paretone.models.megatts3 import text
from paretone.models.megatts3.text import read_text, split_chinese

GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund und läuft dann in den Wald."


@pytest.fixture(autouse=True)
def without_official_normaliser(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on machines that lack WeTextProcessing."""
    for name in ("tn", "tn.english", "tn.english.normalizer", "tn.chinese", "tn.chinese.normalizer"):
        monkeypatch.setitem(sys.modules, name, None)
    text._official_normaliser.cache_clear()
    yield
    text._official_normaliser.cache_clear()


def test_other_languages_are_refused_with_those_that_are_spoken() -> None:
    with pytest.raises(TextError, match="looks like German, but MegaTTS 3 speaks only English and Chinese"):
        read_text(GERMAN)


@pytest.mark.parametrize("nothing", ["", "  \n", "...", "🙂"])
def test_nothing_to_speak_is_an_error(nothing: str) -> None:
    with pytest.raises(TextError, match=r"no text|can be spoken"):
        read_text(nothing)


def test_english_is_written_out_and_the_user_is_told_by_whose_rules() -> None:
    read = read_text("It costs $5.")
    assert read.segments == ("It costs five dollars.",)
    assert len(read.notes) == 1
    assert "WeTextProcessing" in read.notes[0]
    assert read_text("It costs five dollars.").notes == ()


def test_dropped_characters_are_named() -> None:
    assert any("🙂" in note for note in read_text("How nice 🙂 that is.").notes)


def test_numbers_in_chinese_are_left_and_said_so() -> None:
    read = read_text("今年是2024年。")
    assert read.segments == ("今年是2024年。",)
    assert "WeTextProcessing" in read.notes[0]
    assert read_text("今年很好。").notes == ()


def test_the_official_normaliser_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Normalizer:
        def __init__(self, **options: object) -> None:
            self.options = options

        def normalize(self, sentence: str) -> str:
            return f"officially, {sentence} {sorted(self.options)}"

    for language in ("english", "chinese"):
        module = ModuleType(f"tn.{language}.normalizer")
        module.Normalizer = Normalizer
        monkeypatch.setitem(sys.modules, f"tn.{language}.normalizer", module)
        monkeypatch.setitem(sys.modules, f"tn.{language}", ModuleType(f"tn.{language}"))
    monkeypatch.setitem(sys.modules, "tn", ModuleType("tn"))
    assert read_text("It costs $5").segments == ("officially, It costs $5 ['overwrite_cache']",)
    assert "remove_erhua" in read_text("今年是2024年").segments[0]
    assert read_text("It costs $5").notes == ()


def test_english_is_cut_after_punctuation_at_130_bytes() -> None:
    clause = "this clause has some words in it, "
    segments = read_text(clause * 10).segments
    assert [len(segment) for segment in segments] == [len(clause) * 3 - 1] * 3 + [len(clause) - 1]


def test_what_the_grapheme_model_could_not_finish_is_cut_again() -> None:
    words = "word " * 200
    segments = read_text(words).segments
    assert all(len(segment) <= 300 for segment in segments)
    assert " ".join(segments).split() == words.split()
    mixed = read_text("好的" + " word" * 200).segments
    assert all(len(segment) <= 300 for segment in mixed)
    assert "".join(mixed).count("word") == 200


def test_chinese_is_cut_at_the_best_mark_near_by() -> None:
    han = "字"
    # A full stop a little further wins over a comma that is nearer, and over one before.
    assert split_chinese(han * 60 + "，" + han * 5 + "。" + han * 3) == [han * 60 + "，" + han * 5 + "。", han * 3]
    # Too far ahead, and none before: the comma.
    assert split_chinese(han * 60 + "，" + han * 40 + "。") == [han * 60 + "，", han * 40 + "。"]
    # A full stop before.
    assert split_chinese(han * 20 + "。" + han * 80) == [han * 20 + "。", han * 60, han * 20]
    # No mark at all: where the limit is.
    assert split_chinese(han * 130) == [han * 60, han * 60, han * 10]


def test_marks_become_full_width_but_not_within_numbers() -> None:
    assert split_chinese("你好,一共3.14元!行吗?12:30见.") == ["你好，一共3.14元！行吗？12:30见。"]


def test_nothing_is_lost_in_cutting_chinese() -> None:
    sentence = "香辣的，让你舌尖跳舞；有盐焗的。" * 40
    assert "".join(split_chinese(sentence)) == sentence
