"""Sample-rate conversion of whole recordings by cutting or extending the spectrum: exact for what both rates can
hold."""

from __future__ import annotations

from math import gcd

import numpy as np


def resample(samples: np.ndarray, rate: int, target: int) -> np.ndarray:
    """(ceil(n · target / rate),) float32 samples of mono ``samples`` (n,) at ``target`` Hz.

    The recording is taken to be followed by silence, 50 ms of it, so that its end does not reach its beginning.
    """
    if rate == target:
        return np.asarray(samples, np.float32)
    common = gcd(rate, target)
    source_step, target_step = rate // common, target // common
    length = -(-len(samples) * target_step // source_step)
    blocks = -(-(len(samples) + rate // 20) // source_step)
    spectrum = np.fft.rfft(samples, blocks * source_step)
    kept = np.zeros(blocks * target_step // 2 + 1, complex)
    shared = min(len(kept), len(spectrum))
    kept[:shared] = spectrum[:shared]
    resampled = np.fft.irfft(kept, blocks * target_step)[:length] * (target_step / source_step)
    return resampled.astype(np.float32)
