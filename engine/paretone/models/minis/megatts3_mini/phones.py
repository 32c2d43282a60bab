"""Phones of the bundled MegaTTS 3 over the frames of its duration clock."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paretone.front_end.phones import TimedPhone


def phones_of_frames(phones: Sequence[TimedPhone], frames: int, rate: int, hop: int) -> np.ndarray:
    """(frames,) int64, ``mel2ph`` of the official code: the place, from one, of the phone that sounds at the middle of
    each frame, ``(i + 0.5) · hop / rate`` seconds. Frames after the last phone get the last phone."""
    ends = np.array([end for _, _, end in phones])
    middles = (np.arange(frames) + 0.5) * hop / rate
    return np.searchsorted(ends, middles, side="right").clip(max=len(phones) - 1) + 1
