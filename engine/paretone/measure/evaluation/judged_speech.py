"""What judges hear of a recording: speech alone, whatever its level and the silence around it. Torch-free.

A predicted score should be of the speech. So leading and trailing silence is cut where the recording first and last
rises above a hundredth of its peak, and a tenth of a second is left (or put) there; both are exact to the sample.
"""

from __future__ import annotations

import numpy as np

from paretone.audio.resampling import resample
from paretone.errors import AudioError

RATE = 16_000
"""Hz, of what the judges' networks take in."""
AUDIBLE = 0.01
"""Share of the peak at which speech begins and ends: 40 dB below it."""
MARGIN_SECONDS = 0.1
SHORTEST_SECONDS = 0.4
"""Speech that is shorter is not judged: it holds a syllable or two."""
SILENT_PEAK = 1e-4
"""Recordings whose peak is lower, 80 dB below full scale, are silent."""


def speech_in(samples: np.ndarray, rate: int) -> np.ndarray:
    """The speech in mono ``samples`` (n,) at ``rate`` Hz, float32 (m,) at 16 kHz, silence at its ends cut.

    Raises :class:`AudioError` for recordings that are empty, silent, too short or not numbers.
    """
    samples = np.asarray(samples, np.float32)
    if not len(samples):
        raise AudioError("The recording is empty, so there is nothing to judge.")
    if not np.isfinite(samples).all():
        raise AudioError("The recording holds values that are not numbers (NaN), so it cannot be judged.")
    levels = np.abs(samples)
    peak = float(levels.max())
    if peak < SILENT_PEAK:
        raise AudioError("The recording is silent, so there is no speech to judge.")
    loud = np.flatnonzero(levels >= AUDIBLE * peak)
    first, last = int(loud[0]), int(loud[-1]) + 1
    if last - first < SHORTEST_SECONDS * rate:
        raise AudioError(
            f"The recording has {(last - first) / rate:.2f} s of speech; judging takes at least {SHORTEST_SECONDS} s."
        )
    margin = round(MARGIN_SECONDS * rate)
    before, after = max(0, margin - first), max(0, last + margin - len(samples))
    kept = np.pad(samples[max(0, first - margin) : last + margin], (before, after))
    return resample(kept, rate, RATE)
