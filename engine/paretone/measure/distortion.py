"""Mel-cepstral distortion: how far the envelope of one take's spectrum is from that of another. Torch-free.

Source: R. F. Kubichek, "Mel-cepstral distance measure for objective speech quality assessment", 1993. Figures of this
kind depend on how the cepstrum is made and can be compared only with those of the same definition, which is this one:

The natural-log mel magnitudes x of a frame (here those of the vocoder, 100 bands) are a sum of cosines over them,
``x_b = c_0 + Σ_d c_d cos(π d (b + ½) / bands)``. Of these, c_1 to c_13 are the envelope; c_0 is the level, the others
are detail. The distortion of a frame is ``10 / ln 10 · √(2 Σ_d (c_d − c'_d)²)``, which is the root mean square
difference of the two envelopes over the bands, in dB. The figure of a take is the mean over its frames.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from paretone.measure.fidelity import shared_frames

ORDER = 13


def mel_cepstral_distortion(first: np.ndarray, second: np.ndarray) -> float:
    """In dB, frame ``i`` of one against frame ``i`` of the other; spectrograms are (frames, bands), natural logarithm.

    Raises :class:`paretone.errors.SettingError` as :func:`paretone.measure.fidelity.log_mel_distance` does.
    """
    one, other = shared_frames(first, second, "mel-cepstral distortion")
    difference = (one - other) @ cosines(first.shape[1])
    return float(10.0 / math.log(10.0) * np.mean(np.sqrt(2.0 * np.sum(difference**2, axis=1))))


@functools.lru_cache(maxsize=4)
def cosines(bands: int) -> np.ndarray:
    """(bands, ORDER): a log-mel spectrum times this is its c_1 to c_13; fewer if there are fewer bands."""
    degrees = np.arange(1, min(ORDER, bands - 1) + 1)
    return np.cos(np.pi * np.outer(np.arange(bands) + 0.5, degrees) / bands) * 2.0 / bands
