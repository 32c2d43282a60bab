"""A part is repeated, remembered, and forgotten with what it is a part of."""

from __future__ import annotations

import numpy as np
import pytest

from paretone_app.audio.player import Player
from paretone_app.audio.transport import Looping

RATE = 24_000


@pytest.fixture
def player() -> Player:
    made = Player()
    made.load([(np.zeros(4 * RATE, np.float32), RATE)])
    return made


def repeated(player: Player) -> tuple[float, float] | None:
    """What the player itself repeats, in seconds."""
    loop = player.mixer.state.loop
    return None if loop is None else (loop[0] / player.rate, loop[1] / player.rate)


def test_the_player_repeats_what_is_put_and_nothing_that_is_empty(player: Player) -> None:
    looping = Looping(player)
    looping.put((1.0, 2.0))
    assert looping.part == (1.0, 2.0) and repeated(player) == pytest.approx((1.0, 2.0), abs=0.001)
    looping.put((2.0, 2.0))
    assert looping.part is None and repeated(player) is None
    assert looping.last == (1.0, 2.0), "it can be repeated again"


def test_a_part_goes_with_what_it_is_a_part_of(player: Player) -> None:
    looping = Looping(player)
    looping.put((1.0, 3.0))
    looping.fit(4.0)
    assert looping.part == (1.0, 3.0), "it is still there"
    looping.fit(2.0)
    assert looping.part is None and looping.last is None
    looping.put((0.5, 1.0))
    looping.forget()
    assert looping.part is None and looping.last is None and repeated(player) is None
