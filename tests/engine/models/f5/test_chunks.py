from __future__ import annotations

import pytest

from paretone.models.f5.text import maximum_bytes, split, split_for_streaming

TEXT = (
    "The boat left early, before the sun was up. Nobody saw it go! Who would have thought so? "
    "It came back at noon; the nets were full: herring, mostly."
)


@pytest.mark.parametrize("maximum", [20, 45, 60, 1000])
def test_pieces_keep_every_word_and_stay_below_the_maximum(maximum: int) -> None:
    pieces = split(TEXT, maximum)
    assert " ".join(pieces) == TEXT
    for piece in pieces:
        assert len(piece) <= maximum or len(split(piece, 0)) == 1


def test_without_room_every_clause_is_its_own_piece() -> None:
    assert split("One, two. Three", 0) == ["One,", "two.", "Three"]
    assert maximum_bytes("x" * 50, 22.0) == 0
    assert maximum_bytes("x" * 50, 25.0) < 0


def test_chinese_is_cut_after_its_own_punctuation_and_joined_without_spaces() -> None:
    assert split("你好，世界。再见！", 18) == ["你好，世界。", "再见！"]


def test_empty_text_has_no_pieces() -> None:
    assert split("", 100) == []
    assert split_for_streaming("", 100) == []


def test_an_overlong_clause_stays_whole_unless_asked() -> None:
    words = "word " * 100
    assert split(words.strip(), 60) == [words.strip()]
    broken = split(words.strip(), 60, break_long=True)
    assert " ".join(broken) == words.strip()
    assert max(map(len, broken)) <= 60


@pytest.mark.parametrize("text", ["a" * 1000, "好" * 500, "a" * 100 + " b " + "c" * 100])
def test_an_overlong_word_is_broken_between_characters(text: str) -> None:
    broken = split(text, 50, break_long=True)
    assert "".join("".join(broken).split()) == "".join(text.split())
    assert max(len(piece.encode()) for piece in broken) <= 50


def test_breaking_changes_nothing_where_all_fits() -> None:
    assert split(TEXT, 60, break_long=True) == split(TEXT, 60)


def test_streaming_starts_with_a_short_piece() -> None:
    pieces = split_for_streaming(TEXT, 140)
    assert " ".join(pieces) == TEXT
    assert len(pieces[0]) <= 35 < len(split(TEXT, 140)[0])
    assert pieces[-1] == split(TEXT, 140)[-1]
