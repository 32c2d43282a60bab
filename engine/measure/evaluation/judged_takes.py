"""What judges say of a take, one figure per judge that is installed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.audio.recording import read_recording
from engine.errors import AudioError
from engine.measure.evaluation.judges import judge_named
from engine.measure.melody import log_pitch, pitch_range

if TYPE_CHECKING:
    from engine.measure.evaluation.naturalness import NaturalnessJudge
    from engine.measure.evaluation.speakers import VoiceJudge

JUDGED_FIGURES = ("naturalness", "voice_similarity", "pitch_range")
"""What there can be of a single take, by the names of :mod:`engine.measure.metrics`."""


def judged_figures(
    samples: np.ndarray, rate: int, prompt: str = "", check: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Naturalness, similarity to the recording ``prompt`` and pitch range of mono ``samples`` (n,) at ``rate`` Hz, by
    the names of :mod:`engine.measure.metrics`; without those whose judge is not installed, or that cannot be measured.

    ``check`` is called every third of a second and may raise to cancel.
    """
    spread = pitch_range(log_pitch(samples, rate))
    found = {} if spread is None else {"pitch_range": spread}
    check()
    naturalness, voices = _naturalness(), _voices()
    check()
    # Silence has no voice, and some prompts are gone: what else can be measured is.
    with suppress(AudioError):
        if voices is not None and prompt:
            recording = read_recording(prompt)
            mine = voices.voice_of(recording.samples, recording.sample_rate)
            found["voice_similarity"] = voices.similarity(mine, voices.voice_of(samples, rate))
    with suppress(AudioError):
        if naturalness is not None:
            found["naturalness"] = naturalness.naturalness(samples, rate, check)
    return found


@lru_cache(maxsize=1)
def _naturalness() -> NaturalnessJudge | None:
    if judge_named("naturalness").problem():
        return None
    from engine.measure.evaluation.naturalness import load

    return load((), Path(), "cpu")


@lru_cache(maxsize=1)
def _voices() -> VoiceJudge | None:
    if judge_named("voice").problem():
        return None
    from engine.measure.evaluation.speakers import load

    return load((), Path(), "cpu")
