"""When pieces come, and how many steps the time that is left allows."""

from __future__ import annotations

import pytest

from engine.models.pacing import FEWEST_STEPS, Pace


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


def test_as_many_steps_as_fit_before_what_was_heard_runs_out(clock: Clock) -> None:
    pace = Pace(0.0, clock)
    assert pace.affordable(16) == 16
    clock.now = 1.0
    pace.delivered(2.0)
    pace.measured(8, 0.8, 0.1)
    # 0.8 of the 2 s that are left, without 0.1 s for decoding, at 0.1 s a step.
    assert pace.affordable(16) == 15
    assert pace.affordable(10) == 10
    clock.now = 2.9
    assert pace.affordable(16) == FEWEST_STEPS
