"""The selection is remembered from one session to the next, and what cannot be read is passed over."""

from __future__ import annotations

import json

import pytest

from app.state.remembering import Remembered
from engine.models.base import Voice

WHOLE = Remembered(
    "A text.",
    "anna",
    (Voice("own:me", "me", "/me.wav", "That is me."),),
    7,
    False,
    {"steps": 4},
    {"ditreducio": {"threshold": 0.2}},
    {"ditreducio": True},
)


def test_what_is_written_is_read() -> None:
    assert Remembered.from_json(WHOLE.to_json()) == WHOLE


def test_the_first_edition_is_read() -> None:
    first = WHOLE.to_json().replace('"used"', '"engaged"')
    assert Remembered.from_json(first) == WHOLE


@pytest.mark.parametrize("rubbish", ["", "{", "[]", "7"])
def test_what_is_no_selection_is_none(rubbish: str) -> None:
    assert Remembered.from_json(rubbish) is None


def test_parts_that_cannot_be_read_are_passed_over() -> None:
    damaged = {**json.loads(WHOLE.to_json()), "seed": "x", "own_voices": [1, ["too", "short"]], "knobs": 3}
    found = Remembered.from_json(json.dumps(damaged))
    assert found is not None and found.text == "A text."
    assert (found.seed, found.own_voices, found.knobs) == (None, (), None)
