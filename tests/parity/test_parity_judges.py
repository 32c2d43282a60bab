"""Predicted naturalness and voice embeddings against what the packages' own code computed (``distillmos`` 0.9.1;
``resemblyzer`` 0.1.4 with librosa 0.10.2), from the same weights and the same samples at 16 kHz. That code cannot run
here: it needs torchaudio, librosa and webrtcvad."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from paretone.measure.evaluation import naturalness, speakers

RATE = 16_000
RECORDED = Path(__file__).resolve().parent.parent / "golden" / "judges" / "scores.json"
SECONDS = (0.5, 1.7, 8.5)


def voiced(seconds: float) -> np.ndarray:
    """A gliding voice of twenty harmonics with pauses, and a little noise; (n,) at 16 kHz."""
    count = round(seconds * RATE)
    time = np.arange(count) / RATE
    phase = 2 * np.pi * np.cumsum(150 + 40 * np.sin(1.3 * time)) / RATE
    tone = sum(np.sin(number * phase) / number for number in range(1, 21))
    open_mouth = np.clip(np.sin(9 * time) + 0.5, 0, 1)
    noise = np.random.default_rng(0).standard_normal(count)
    return (0.1 * tone * open_mouth + 0.002 * noise).astype(np.float32)


def recorded() -> dict[str, dict]:
    """By the seconds of the recording: ``naturalness`` and ``embedding``."""
    return json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.skipif(find_spec(naturalness.PACKAGE) is None, reason="distillmos is not installed")
def test_naturalness_is_the_packages_own() -> None:
    judge = naturalness.load((), Path(), "cpu")
    for seconds in SECONDS:
        assert judge.score(voiced(seconds)) == pytest.approx(recorded()[str(seconds)]["naturalness"], abs=2e-4)


@pytest.mark.skipif(find_spec(speakers.PACKAGE) is None, reason="resemblyzer is not installed")
def test_voice_embeddings_are_the_packages_own() -> None:
    judge = speakers.load((), Path(), "cpu")
    for seconds in SECONDS:
        np.testing.assert_allclose(judge.embed(voiced(seconds)), recorded()[str(seconds)]["embedding"], atol=2e-5)
