"""When pieces come, and how many steps the time that is left allows."""

from __future__ import annotations

import pytest

from paretone.models.families.pacing import FEWEST_STEPS, AssumedPace, Pace


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_times_to_the_first_piece_and_between_pieces(clock: Clock) -> None:
    pace = Pace(0.0, clock)
    for clock.now, seconds in ((0.3, 1.0), (0.8, 1.0), (2.0, 0.5)):
        pace.delivered(seconds)
    assert pace.first_audio_seconds == pytest.approx(0.3)
    assert pace.largest_gap == pytest.approx(1.2)
    assert pace.pause == 0
    assert pace.remarks == ()


def test_playback_that_would_have_waited_is_told(clock: Clock) -> None:
    pace = Pace(0.0, clock)
    # Half a second late, and once more after that was made up for.
    for clock.now, seconds in ((0.0, 1.0), (1.5, 1.0), (3.0, 1.0)):
        pace.delivered(seconds)
    assert pace.pause == pytest.approx(1.0)
    assert "would have paused for 1.0 s" in pace.remarks[0]


def test_a_wait_that_is_not_over_counts_so_far(clock: Clock) -> None:
    pace = Pace(0.0, clock)
    clock.now = 5.0
    assert pace.pause_so_far == 0
    pace.delivered(1.0)
    clock.now = 6.5
    assert pace.pause_so_far == pytest.approx(0.5)
    assert pace.pause == 0
    pace.delivered(1.0)
    assert pace.pause_so_far == pace.pause == pytest.approx(0.5)


def test_as_many_steps_as_fit_before_what_was_heard_runs_out(clock: Clock) -> None:
    pace = Pace(0.0, clock)
    assert pace.affordable(16, 100, 20) == 16
    clock.now = 1.0
    pace.delivered(2.0)
    assert pace.affordable(16, 100, 20) == 16
    pace.stepped(100, 0.1)
    pace.decoded(20, 0.1)
    # 0.8 of the 2 s that are left, without 0.1 s for decoding, at 0.1 s a step.
    assert pace.affordable(16, 100, 20) == 15
    assert pace.affordable(10, 100, 20) == 10
    # Longer canvases take longer, and so does decoding more.
    assert pace.affordable(16, 150, 20) == 10
    assert pace.affordable(16, 100, 40) == 14
    clock.now = 2.9
    assert pace.affordable(16, 100, 20) == FEWEST_STEPS


def test_a_running_block_may_use_more_of_the_time_and_is_cut_when_that_is_gone(clock: Clock) -> None:
    pace = Pace(0.0, clock)
    pace.delivered(2.0)
    for seconds in (0.1, 0.1, 0.1, 0.1):
        pace.stepped(100, seconds)
    # 0.9 of 2 s.
    assert pace.still(1, 30, 100, 20) == 18
    assert pace.still(1, 10, 100, 20) == 10
    # The last two steps say that it has become twice as slow.
    pace.stepped(100, 0.2)
    pace.stepped(100, 0.2)
    assert pace.still(3, 30, 100, 20) == 9
    clock.now = 2.0
    assert pace.still(1, 10, 100, 20) == FEWEST_STEPS - 1
    assert pace.still(6, 10, 100, 20) == 1


def test_an_assumed_pace_is_moved_by_its_own_steps_only() -> None:
    pace = AssumedPace(0.05)
    for _ in range(4):
        pace.stepped(100, 3.0)
    pace.delivered(1.0)
    pace.decoded(20, 3.0)
    # 0.8 of 1 s at 0.05 s a step, whatever it was and over how many rows.
    assert pace.affordable(30, 7, 20) == pace.affordable(30, 700, 20) == 16
    assert pace.still(2, 14, 700, 20) == 14
    for _ in range(16):
        pace.stepped(100, 0.0)
    pace.delivered(1.5)
    # 0.2 s were left of the first.
    assert pace.affordable(30, 100, 20) == 27
