"""Post-processing of a segment's audio: the prompt's loudness, and a fade into the next. Rules of ``tts/infer_cli.py``
and ``tts/utils/audio_utils/io.py``. Torch-free."""

from __future__ import annotations

import numpy as np

from paretone.audio.cross_fade import CrossFader
from paretone.measure.loudness import integrated_loudness

FADE_SECONDS = 0.16
PEAK = 0.95
"""Peak of a segment that would reach full scale."""


def level_matched(samples: np.ndarray, lufs: float, rate: int) -> np.ndarray:
    """``samples`` (n,) as loud as ``lufs``, float32; quieter where they would clip. Silence stays as it is."""
    own = integrated_loudness(samples, rate).lufs
    if not (np.isfinite(own) and np.isfinite(lufs)):
        return samples.astype(np.float32)
    louder = samples * 10 ** ((lufs - own) / 20)
    highest = np.abs(louder).max()
    return (louder * (PEAK / highest) if highest >= 1 else louder).astype(np.float32)


def hann_fade(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """The falling and the rising half of a symmetric Hann window twice as long."""
    window = np.hanning(2 * samples)
    return window[samples:], window[:samples]


def segment_fader(rate: int = 24000, seconds: float = FADE_SECONDS) -> CrossFader:
    """Joins segments as the official code does, which fades for :data:`FADE_SECONDS`."""
    return CrossFader(int(rate * seconds), hann_fade)
