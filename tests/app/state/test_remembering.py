"""The selection is remembered from one session to the next, and what cannot be read is passed over."""

from __future__ import annotations

import json

import pytest

from paretone.models.base import Voice
from paretone_app.state.model_selection import Remembered, RememberedModel

OF_F5 = RememberedModel(
    "/models/mine",
    "F5TTS_Base",
    "anna",
    {"steps": 4},
    {"ditreducio": {"threshold": 0.2}},
    {"ditreducio": True},
    {"guidance_free": "0123"},
)
WHOLE = Remembered(
    "A text.",
    (Voice("own:me", "me", "/me.wav", "That is me."),),
    7,
    False,
    "f5-mini",
    "cuda",
    {"f5-mini": OF_F5, "lm-mini": RememberedModel(options={"temperature": 0.5})},
    vocoders={"F5TTS_Base": "/vocos"},
)
EARLIER = {
    "text": "A text.",
    "voice": "ella",
    "own_voices": [["own:me", "me", "/me.wav", "That is me."]],
    "seed": 7,
    "seed_locked": False,
    "options": {"steps": 4},
    "knobs": {"ditreducio": {"threshold": 0.2}},
    "used": {"ditreducio": True},
}
"""As versions wrote it that had one selection for all models."""


def test_what_is_written_is_read() -> None:
    assert Remembered.from_json(WHOLE.to_json()) == WHOLE


@pytest.mark.parametrize("used", ["used", "engaged"])
def test_earlier_editions_are_read_without_what_belonged_to_no_model(used: str) -> None:
    data = {used if name == "used" else name: value for name, value in EARLIER.items()}
    found = Remembered.from_json(json.dumps(data))
    assert found is not None
    assert (found.text, found.own_voices, found.seed, found.seed_locked, found.voice) == (
        *("A text.", WHOLE.own_voices, 7, False),
        "ella",
    )
    assert (found.model, found.models, found.has_common_options) == ("", {}, True)


@pytest.mark.parametrize("rubbish", ["", "{", "[]", "7"])
def test_what_is_no_selection_is_none(rubbish: str) -> None:
    assert Remembered.from_json(rubbish) is None


def test_parts_that_cannot_be_read_are_passed_over() -> None:
    damaged = {**json.loads(WHOLE.to_json()), "seed": "x", "own_voices": [1, ["too", "short"]], "model": 3}
    damaged["models"] = {"f5-mini": {"options": 3, "voice": [], "knobs": {"steps": 1}}, "lm-mini": 7}
    found = Remembered.from_json(json.dumps(damaged))
    assert found is not None and found.text == "A text."
    assert (found.seed, found.own_voices, found.model) == (None, (), "")
    assert found.models == {"f5-mini": RememberedModel(knobs={"steps": 1})}
