"""One phone per mel frame, as the bundled models read a text: that which sounds at the middle of the frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paretone.front_end.phones import PhoneVocabulary
from paretone.front_end.timed_phone import TimedPhone


def labels(
    phones: Sequence[TimedPhone], frames: int, vocabulary: PhoneVocabulary, rate: int = 24000, hop: int = 256
) -> np.ndarray:
    """(frames,) int64 indices of the phones that sound at the middles of mel frames, ``(i + 0.5) · hop / rate``
    seconds. Frames after the last phone get the last phone."""
    ends = np.array([end for _, _, end in phones])
    middles = (np.arange(frames) + 0.5) * hop / rate
    sounding = np.searchsorted(ends, middles, side="right").clip(max=len(phones) - 1)
    return vocabulary.ids(phone for phone, _, _ in phones)[sounding]
