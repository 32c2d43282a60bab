"""Waits are those of the last stream."""

from __future__ import annotations

import numpy as np
import pytest

from paretone_app.audio.player import Player
from paretone_app.audio.transport import Waits

RATE = 24_000


def test_waits_are_counted_from_where_they_begin() -> None:
    player = Player()
    waits = Waits(player)
    waits.begin()
    player.begin_stream(RATE)
    player.mixer.play()
    player.append(np.zeros(RATE // 10, np.float32))
    player.mixer.render(np.zeros(player.rate // 4, np.float32))
    assert waits.counted == (1, pytest.approx(0.15, abs=0.04))
    waits.begin()
    assert waits.counted == (0, 0.0)
