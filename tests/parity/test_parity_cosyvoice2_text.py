"""Splitting and normalisation of CosyVoice 2 against the official code, run without its optional normalisers."""

from __future__ import annotations

import re

import pytest

from paretone.models.cosyvoice2 import text
from paretone.models.cosyvoice2.text import ENOUGH, LONGEST, SHORTEST, normalised, pieces
from tests.parity.fixtures import Fixture, fixtures

IMPROVED_NUMBER = re.compile(r"\d[.,:/]\d|\d{4}|(?<!\d)0\d|[^\s\d]\d|\d[^\s\d.,;!?]")


def is_text(description: dict) -> bool:
    return "tokenizer_stand_in" in description


def count(piece: str) -> int:
    """Words and signs, which the fixture counted instead of tokens."""
    return len(re.findall(r"\w+|[^\w\s]", piece))


@pytest.fixture(autouse=True)
def without_wetext(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_official_normaliser", lambda language: None)


@pytest.mark.parametrize("fixture", fixtures("ar", is_text))
def test_parity_cosyvoice2_text(fixture: Fixture) -> None:
    sizes = fixture.description["params"]
    assert (sizes["token_max_n"], sizes["token_min_n"], sizes["merge_len"]) == (LONGEST, ENOUGH, SHORTEST)
    rows = fixture.description["rows"]
    assert [normalised(row["text"], improved=False)[0] for row in rows] == [row["joined"] for row in rows]
    assert [list(pieces(row["joined"], count)) for row in rows] == [row["split"] for row in rows]


@pytest.mark.parametrize("fixture", fixtures("ar", is_text))
def test_parity_cosyvoice2_text_improved_differs_in_numbers_only(fixture: Fixture) -> None:
    """Short whole numbers apart, which both ways read alike."""
    for row in fixture.description["rows"]:
        if not IMPROVED_NUMBER.search(row["text"]):
            assert normalised(row["text"])[0] == row["joined"]
