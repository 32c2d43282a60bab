"""What is said and how it is split into tokens."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from paretone.errors import CheckpointError, TextError
from paretone.models.cosyvoice2 import text
from paretone.models.cosyvoice2.text import ADDED, END_OF_PROMPT, NUMBERS_NOTE, TextTokenizer, normalised, read_text
from tests.engine.models.cosyvoice2.small_release import SIZE, write_tokenizer


def words(piece: str) -> int:
    return len(piece.split())


@pytest.fixture
def without_wetext(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wetext", None)
    text._official_normaliser.cache_clear()
    yield
    text._official_normaliser.cache_clear()


@pytest.mark.usefixtures("without_wetext")
@pytest.mark.parametrize(
    ("given", "spoken"),
    [
        ("It costs $3.50.", "It costs three dollars and fifty cents."),
        ("In 1998 it grew by 1.5%.", "In nineteen ninety eight it grew by one point five percent."),
        ("Agent 007.", "Agent zero zero seven."),
    ],
)
def test_what_upstream_would_cut_or_misread_is_read_by_our_rules(given: str, spoken: str) -> None:
    assert read_text(given, words) == text.ReadText((spoken,), (NUMBERS_NOTE,))


@pytest.mark.usefixtures("without_wetext")
@pytest.mark.parametrize(
    ("number", "spoken"),
    [(0, "zero"), (13, "thirteen"), (40, "forty"), (101, "one hundred and one"), (999, "nine hundred and ninety-nine")],
)
def test_short_numbers_are_written_as_upstream_does(number: int, spoken: str) -> None:
    assert read_text(f"There are {number}, she said", words).pieces == (f"There are {spoken}, she said.",)


def test_decimals_in_chinese_stay_in_one_piece() -> None:
    assert read_text("气温是1.5度.", words).pieces == ("气温是一点五度。",)


@pytest.mark.usefixtures("without_wetext")
def test_decimals_in_chinese_stay_in_one_piece_unless_they_are_read_as_upstream_does() -> None:
    assert read_text("气温是1.5度.", words).pieces == ("气温是1点5度。",)
    # After the mark in the middle a new sentence begins.
    assert read_text("气温是1.5度.", words, improved=False).pieces == ("气温是1。5度。",)
    assert read_text("It costs $1.50.", words, improved=False) == text.ReadText(("It costs $one.fifty.",))


@pytest.mark.parametrize("given", ["3個ください。", "안녕 3개"])
def test_numbers_of_other_languages_get_no_english_words(given: str) -> None:
    assert "three" not in normalised(given)[0]


@pytest.mark.parametrize(("given", "problem"), [("", "no text"), (" \n", "no text"), ("?!…", "only punctuation")])
def test_texts_without_anything_to_speak_are_refused(given: str, problem: str) -> None:
    with pytest.raises(TextError, match=problem):
        read_text(given, words)


def test_marks_of_the_model_are_left_alone() -> None:
    given = "<|en|> 12, [laughter] and $3.50. Really. " * 20
    assert read_text(given, words).pieces == (given,)
    assert read_text("Well [laughter] <strong>no</strong>!", words).pieces == ("Well [laughter] <strong>no</strong>!",)


def test_wetext_is_used_where_it_is_installed() -> None:
    spoken = "It costs three point five dollars for two."
    assert read_text("It costs $3.50 for 2.", words) == text.ReadText((spoken,))
    # Some versions leave interjections out unless told otherwise.
    assert read_text("嗯，1.5度。", words).pieces == ("嗯，一点五度。",)


TEXTS = (
    "hello, the world's other 1234 things",
    "  two  blanks\n\nand lines ",
    "cafe\u0301 caf\u00e9 naïve",
    "你好，世界。こんにちは 안녕",
    f"Say it with a smile.{END_OF_PROMPT}Well [laughter] then <strong>now</strong>!",
    "[laughter][breath] [mn]<|im_start|>",
    "I'M they'LL",
    "",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("blank")
    write_tokenizer(folder)
    return folder


def test_added_tokens_follow_the_vocabulary_in_the_official_order(folder: Path) -> None:
    tokenizer = TextTokenizer.load(folder)
    assert tokenizer.size == SIZE + len(ADDED)
    assert [tokenizer.encode(token) for token in ADDED] == [[SIZE + number] for number in range(len(ADDED))]
    # With Qwen2's 151,643 entries: the ids of the release.
    assert 151643 + ADDED.index(END_OF_PROMPT) == 151646 and 151643 + ADDED.index("[mn]") == 151662


def test_ids_are_those_of_transformers(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    official = transformers.Qwen2TokenizerFast.from_pretrained(folder)
    official.add_tokens(list(ADDED), special_tokens=True)
    tokenizer = TextTokenizer.load(folder)
    for one in TEXTS:
        assert tokenizer.encode(one) == official(one)["input_ids"], one
    assert tokenizer.count("hello") == 1


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_what_is_missing_or_damaged_is_named(tmp_path: Path, name: str) -> None:
    pytest.importorskip("tokenizers")
    write_tokenizer(tmp_path)
    (tmp_path / name).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="cannot be read"):
        TextTokenizer.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name} is missing"):
        TextTokenizer.load(tmp_path)


def test_a_table_that_is_too_small_is_refused(folder: Path) -> None:
    tokenizer = TextTokenizer.load(folder)
    tokenizer.require_rows(tokenizer.size, "the table")
    with pytest.raises(CheckpointError, match="do not belong together"):
        tokenizer.require_rows(tokenizer.size - 1, "the table")


def test_without_the_package_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(CheckpointError, match=r"pip install 'paretone\[cosyvoice\]"):
        TextTokenizer.load(folder)
