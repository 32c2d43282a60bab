"""Fades between sounds.

On every jump of what is heard (another take, a seek, the end of a loop, pause and resume, another gain), the old sound
continues for 10 ms under the new one. The weights follow the great circle between the two signals (spherical
interpolation): ``sin(phi * x) / sin(phi)`` for the new one and ``sin(phi * (1 - x)) / sin(phi)`` for the old, where
``cos(phi)`` is the correlation of the two 10 ms that are about to be mixed. That keeps the power constant for *any*
correlation: it is the equal-power fade (sine and cosine) for unrelated sounds and the equal-gain fade (straight lines)
for identical ones, where an equal-power fade would swell by 3 dB and betray the switch. Negative correlations count as
none, so nothing is ever amplified beyond equal power.

MUSHRA wants another fade (BS.1534-3): the old sound fades out in 5 ms, then the new one fades in, both along a raised
cosine, so that the two are never heard at once. The clock keeps running.
"""

from __future__ import annotations

import numpy as np

FADE_SECONDS = 0.010
LAWS = 33
"""Fade laws are tabulated for correlations 0, 1/32 .. 1."""
OUT_AND_IN = LAWS
"""The law, an index into :func:`all_laws`, that fades out and then in."""


def all_laws(length: int) -> np.ndarray:
    """Weights (laws, 2, length) float32 of the entering and of the leaving sound: those of :func:`fade_laws`, and that
    of :func:`out_and_in` as the last."""
    return np.concatenate([fade_laws(length), out_and_in(length)[None]])


def fade_laws(length: int) -> np.ndarray:
    """Weights (laws, 2, length) float32 of the entering and the leaving sound; see the module for the formula."""
    along = np.arange(1, length + 1) / (length + 1)
    laws = np.empty((LAWS, 2, length), np.float32)
    for index in range(LAWS):
        angle = np.arccos(index / (LAWS - 1))
        entering = np.sin(angle * along) / np.sin(angle) if angle > 0 else along
        laws[index] = entering, entering[::-1]
    return laws


def out_and_in(length: int) -> np.ndarray:
    """Weights (2, length) float32 of a fade whose first half only lets go and whose second half only brings in."""
    half = length // 2
    rising = 0.5 - 0.5 * np.cos(np.pi * np.arange(1, half + 1) / (half + 1))
    law = np.zeros((2, length), np.float32)
    law[0, length - half :], law[1, :half] = rising, rising[::-1]
    return law
