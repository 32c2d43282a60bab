"""How lively a take's melody is, and how much it varies from seed to seed. Torch-free.

Few steps and strong guidance speak the average reading: clear, and always the same. Predicted naturalness does not fall
with that; these two figures do.

* **Pitch range** of a take: the standard deviation of the natural logarithm of the fundamental frequency over its
  voiced frames. 0.16 is 2.8 semitones.
* **Diversity** of takes of one sentence and voice with different seeds: the standard deviation over the takes, frame by
  frame where all are voiced, and of these the mean. Takes of different length are brought to one length first, each
  from its first to its last voiced frame, so there it has differences of timing in it as well.

The fundamental frequency is YIN's (:mod:`paretone.measure.pitch`), without frames that are further than a factor of 1.8
from the take's median, which are octave errors as a rule. YIN leaves out steep glides, so pitch ranges are some three
tenths lower than those of the curve that a vocoder is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paretone.errors import SettingError
from paretone.measure.pitch import fundamental

FURTHEST = 0.6
"""Natural logarithm of the largest ratio of a frame's frequency to the median."""
FEWEST = 20
"""Voiced frames, 10 ms each, that a figure takes at least."""
SAME_LENGTH = 2
"""Frames by which takes with the same timing may differ (rounding)."""


def log_pitch(samples: np.ndarray, rate: int) -> np.ndarray:
    """Natural logarithm of the fundamental frequency in Hz of each frame of mono ``samples`` (n,), 10 ms apart, as
    (frames,); 0 where unvoiced. No frames for recordings shorter than a few periods."""
    try:
        found = fundamental(samples, rate)
    except SettingError:
        return np.zeros(0)
    curve = np.where(found > 0, np.log(np.maximum(found, 1.0)), 0.0)
    voiced = curve > 0
    if voiced.any():
        curve[np.abs(curve - np.median(curve[voiced])) > FURTHEST] = 0.0
    return curve


def mean_pitch(curve: np.ndarray) -> float:
    """Geometric mean of the fundamental frequency in Hz of what :func:`log_pitch` gave; NaN where nothing is voiced."""
    voiced = curve[curve > 0]
    return float(np.exp(voiced.mean())) if len(voiced) else float("nan")


def pitch_range(curve: np.ndarray) -> float | None:
    """Pitch range of what :func:`log_pitch` gave; ``None`` for less than 0.2 s of voice."""
    voiced = curve[curve > 0]
    return float(voiced.std()) if len(voiced) >= FEWEST else None


def diversity(curves: Sequence[np.ndarray]) -> float | None:
    """Diversity of takes by their curves, (frames,) each; ``None`` for fewer than two takes, and where too few frames
    are voiced in all. The standard deviation is that of a sample (n - 1), so that it does not grow with the takes."""
    if len(curves) < 2:
        return None
    lengths = [len(one) for one in curves]
    if max(lengths) - min(lengths) <= SAME_LENGTH:
        together = np.array([one[: min(lengths)] for one in curves])
    else:
        cut = [_from_voice_to_voice(one) for one in curves]
        length = round(float(np.mean([len(one) for one in cut])))
        together = np.array([_stretched(one, length) for one in cut])
    voiced = (together > 0).all(0)
    if voiced.sum() < FEWEST:
        return None
    return float(together[:, voiced].std(0, ddof=1).mean())


def _from_voice_to_voice(curve: np.ndarray) -> np.ndarray:
    voiced = np.flatnonzero(curve)
    return curve[voiced[0] : voiced[-1] + 1] if len(voiced) else curve[:0]


def _stretched(curve: np.ndarray, length: int) -> np.ndarray:
    """``curve`` resampled to ``length`` frames by nearest neighbour."""
    if not len(curve):
        return np.zeros(length)
    return curve[((np.arange(length) + 0.5) * len(curve) / length).astype(int)]
