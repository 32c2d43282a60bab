"""Splitting and normalisation of CosyVoice 2 against the official code, run without its optional normalisers."""

from __future__ import annotations

import re

import pytest

from engine.models.cosyvoice2 import text
from engine.models.cosyvoice2.text import ENOUGH, LONGEST, SHORTEST, normalised, pieces
from tests.parity.fixtures import Fixture, fixtures


def is_text(description: dict) -> bool:
    return "tokenizer_stand_in" in description


def count(piece: str) -> int:
    """What the fixture counted instead of tokens."""
    return len(re.findall(r"\w+|[^\w\s]", piece))


@pytest.fixture(autouse=True)
def without_wetext(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_official_normaliser", lambda language: None)


@pytest.mark.parametrize("fixture", fixtures("ar", is_text))
def test_parity_cosyvoice2_text(fixture: Fixture) -> None:
    sizes = fixture.description["params"]
    assert (sizes["token_max_n"], sizes["token_min_n"], sizes["merge_len"]) == (LONGEST, ENOUGH, SHORTEST)
    rows = fixture.description["rows"]
    assert [normalised(row["text"])[0] for row in rows] == [row["joined"] for row in rows]
    assert [list(pieces(row["joined"], count)) for row in rows] == [row["split"] for row in rows]
