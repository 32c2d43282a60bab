from __future__ import annotations

import pytest

from paretone.front_end.chunking import chunks, sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two? Three!", ["One.", "Two?", "Three!"]),
        ("Dr. Lee met J. K. Rowling. They spoke.", ["Dr. Lee met J. K. Rowling.", "They spoke."]),
        ("It cost 3.50 dollars. OK.", ["It cost 3.50 dollars.", "OK."]),
        ("“Go!” she said. He went.", ["“Go!” she said.", "He went."]),
        ("Title\n\nBody text", ["Title", "Body text"]),
        ("no end", ["no end"]),
        ("  ", []),
    ],
)
def test_sentences(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


def letters(text: str) -> float:
    """A stand-in for duration: one second a letter."""
    return float(sum(character.isalnum() for character in text))


def test_short_sentences_share_a_chunk() -> None:
    assert chunks("Aa bb. Cc dd. Ee ff.", letters, budget=8) == ["Aa bb. Cc dd.", "Ee ff."]


def test_a_long_sentence_is_cut_at_commas_then_at_words() -> None:
    assert chunks("Aaa bbb, ccc ddd.", letters, budget=6) == ["Aaa bbb,", "ccc ddd."]
    assert chunks("aaa bbb ccc ddd", letters, budget=6) == ["aaa", "bbb ccc", "ddd"] or all(
        letters(part) <= 6 for part in chunks("aaa bbb ccc ddd", letters, budget=6)
    )


def test_the_first_chunk_is_shorter_but_never_cut_inside_a_clause() -> None:
    assert chunks("Aaa bbb, ccc. Ddd eee.", letters, budget=20, first_budget=7) == ["Aaa bbb,", "ccc. Ddd eee."]
    assert chunks("Aaa bbb ccc. Ddd eee.", letters, budget=20, first_budget=4) == ["Aaa bbb ccc.", "Ddd eee."]


@pytest.mark.parametrize("unit", ["word ", "x", "One, two. ", "aaaa-bbbb", "1234567890 "])
def test_nothing_is_lost_and_every_chunk_keeps_to_the_budget(unit: str) -> None:
    text = (unit * 4000)[:20_000]
    cut = chunks(text, letters, budget=120, first_budget=40)
    assert "".join("".join(cut).split()) == "".join(text.split())
    assert all(0 < letters(chunk) <= 120 for chunk in cut)
