"""Texts of CosyVoice 2 beyond what parity covers: numbers that upstream misreads, other scripts, marks, wetext."""

from __future__ import annotations

import sys

import pytest

from paretone.errors import TextError
from paretone.models.cosyvoice2 import text
from paretone.models.cosyvoice2.text import NUMBERS_NOTE, normalised, read_text


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
