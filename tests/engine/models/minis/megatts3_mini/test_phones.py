from __future__ import annotations

import numpy as np

from paretone.front_end.phones import EDGE
from paretone.models.minis.megatts3_mini.phones import phones_of_frames


def test_frames_get_the_phone_at_their_middle_counted_from_one():
    phones = [("s", 0.0, 0.2), ("ˈi", 0.2, 0.5), (EDGE, 0.5, 0.55)]
    places = phones_of_frames(phones, 8, rate=100, hop=10)
    assert places.tolist() == [1, 1, 2, 2, 2, 3, 3, 3]  # The sixth frame's middle is the silence's end.
    assert places.dtype == np.int64
