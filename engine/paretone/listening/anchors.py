"""The anchors of MUSHRA: the reference with its high frequencies taken away.

BS.1534-3 wants a low anchor cut at 3.5 kHz, flat within 0.1 dB below that, 25 dB down at 4 kHz and 50 dB down at
4.5 kHz, and a mid anchor cut at 7 kHz. Both filters here meet that mask, the mid one moved up by 3.5 kHz, and delay
nothing.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

import numpy as np

LOW, MID = "anchor35", "anchor70"
"""As webMUSHRA names them."""
CUTOFFS = {LOW: 3500.0, MID: 7000.0}
"""Hertz."""
LIMITS = {LOW: "3.5 kHz", MID: "7 kHz"}
TITLES = {key: f"Anchor {limit}" for key, limit in LIMITS.items()}
TRANSITION = 500.0
"""Hertz from the end of the pass band to where :data:`ATTENUATION` is reached."""
ATTENUATION = 60.0
"""dB; more than the mask asks for, at its inner edge."""


def low_passed(samples: np.ndarray, rate: int, cutoff: float) -> np.ndarray:
    """Mono ``samples`` (n,) at ``rate`` hertz without what is above ``cutoff``: (n,) float32, not delayed.

    Where the rate holds nothing above the cut-off, the samples themselves.
    """
    if rate / 2 <= cutoff:
        return np.asarray(samples, np.float32)
    taps = _taps(rate, cutoff)
    size = 1 << (len(samples) + len(taps) - 1).bit_length()
    spectrum = np.fft.rfft(np.asarray(samples, np.float64), size) * np.fft.rfft(taps, size)
    start = len(taps) // 2
    return np.fft.irfft(spectrum, size)[start : start + len(samples)].astype(np.float32)


@lru_cache(maxsize=8)
def _taps(rate: int, cutoff: float) -> np.ndarray:
    """An odd number of taps, a Kaiser-windowed sinc (Kaiser 1974)."""
    half = ceil((ATTENUATION - 7.95) / (14.36 * TRANSITION / rate) / 2)
    places = np.arange(-half, half + 1)
    middle = (cutoff + TRANSITION / 2) / rate
    taps = 2 * middle * np.sinc(2 * middle * places) * np.kaiser(2 * half + 1, 0.1102 * (ATTENUATION - 8.7))
    return taps / taps.sum()
