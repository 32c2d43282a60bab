"""What judges say of a take, one figure per judge that is installed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from paretone.errors import AudioError
from paretone.measure.evaluation.installed import heard_figures, voice_judge
from paretone.measure.melody import log_pitch, pitch_range

JUDGED_FIGURES = ("naturalness", "voice_similarity", "pitch_range")
"""What there can be of a single take, by the names of :mod:`paretone.measure.metrics`."""


def judged_figures(
    samples: np.ndarray, rate: int, prompt: str = "", check: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Naturalness, similarity to the recording ``prompt`` and pitch range of mono ``samples`` (n,) at ``rate`` Hz, by
    the names of :mod:`paretone.measure.metrics`; without those whose judge is not installed, or that cannot be
    measured.

    ``check`` is called every third of a second and may raise to cancel.
    """
    spread = pitch_range(log_pitch(samples, rate))
    found = {} if spread is None else {"pitch_range": spread}
    check()
    voices = voice_judge() if prompt else None
    reference = None
    # Some prompts are gone or silent: what else can be measured is.
    with suppress(AudioError):
        reference = None if voices is None else voices.voice_in(prompt)
    return found | heard_figures(samples, rate, reference, check)[0]
