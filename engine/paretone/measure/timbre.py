"""Timbre distance of two recordings of the same words, by their long-term spectral envelopes. Torch-free.

The envelope of a frame is that of :mod:`paretone.measure.distortion` (cosines 1 to 13 of the log-mel spectrum, so that
neither level nor detail counts). It is averaged over all frames that are less than 40 dB below the loudest, and the
distance is the root mean square difference of two such averages over the bands, in dB.

Unlike mel-cepstral distortion it does not mind when something is said, so that takes of different lengths can be
compared, and unlike a learned judge of speakers it needs no weights. It is no judge of speakers: what is said moves it
as well, so both have to say the same words, and melody has no part in it. As a ruler serves what it says of another
speaker: of the two shipped voices' original speech, the same sentences are 4.7 dB apart.
"""

from __future__ import annotations

import math

import numpy as np

from paretone.errors import SettingError
from paretone.measure.distortion import cosines

AUDIBLE = 40.0
"""dB below the loudest frame down to which frames count."""


def timbre_distance(first: np.ndarray, second: np.ndarray) -> float:
    """In dB; natural-log mel spectrograms (frames, bands) of the same words. Raises :class:`SettingError` for what are
    none."""
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1] or not len(first) or not len(second):
        raise SettingError(
            f"Spectrograms of shapes {first.shape} and {second.shape} have no timbres that could be compared; both "
            "need the same mel bands."
        )
    difference = _envelope(first) - _envelope(second)
    return float(10.0 / math.log(10.0) * np.sqrt(2.0 * np.sum(difference**2)))


def _envelope(mel: np.ndarray) -> np.ndarray:
    """The average c_1 to c_13 of the audible frames of ``mel`` (frames, bands)."""
    mel = mel.astype(np.float64)
    levels = 10.0 * np.log10(np.sum(np.exp(2.0 * mel), axis=1))
    return (mel[levels > levels.max() - AUDIBLE] @ cosines(mel.shape[1])).mean(0)
