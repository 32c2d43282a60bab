"""Distance of an accelerated take from its baseline, frame by frame."""

from __future__ import annotations

import numpy as np

from paretone.errors import SettingError

LENGTH_TOLERANCE = 1
"""Frames by which two takes of the same duration may differ (rounding)."""


def log_mel_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Mean absolute difference of two natural-log Vocos mel spectrograms (frames, bands), in natural-log units: 0.1
    means that magnitudes differ by 10 % on average.

    Meaningful only for takes from the same noise with the same duration, where frame ``i`` of one is frame ``i`` of the
    other. Raises :class:`SettingError` for lengths that differ by more than a frame, other shapes, and values that are
    not numbers.
    """
    one, other = shared_frames(first, second, "log-mel distance")
    return float(np.mean(np.abs(one - other)))


def shared_frames(first: np.ndarray, second: np.ndarray, figure: str) -> tuple[np.ndarray, np.ndarray]:
    """The frames that two spectrograms (frames, bands) both have, in double precision; ``figure`` compares them.

    Raises :class:`SettingError` for lengths that differ by more than a frame, other shapes, and values that are not
    numbers.
    """
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise SettingError(
            f"Spectrograms of shapes {first.shape} and {second.shape} cannot be compared; both need the same mel bands."
        )
    shared = min(len(first), len(second))
    if abs(len(first) - len(second)) > LENGTH_TOLERANCE or shared == 0:
        raise SettingError(
            f"The takes have {len(first)} and {len(second)} frames, so their frames cannot be paired; "
            f"the {figure} compares takes of the same text, voice, speed and seed."
        )
    one, other = first[:shared].astype(np.float64), second[:shared].astype(np.float64)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise SettingError("A spectrogram has values that are not numbers, so its distance cannot be measured.")
    return one, other
