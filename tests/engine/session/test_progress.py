"""The estimate of what is left."""

from __future__ import annotations

import pytest

from paretone.observer import RemainingTime
from tests.engine.recorder import Clock


def run(pace: list[float], total: int) -> list[float | None]:
    """Estimates after units that took ``pace`` seconds each."""
    clock = Clock()
    remaining = RemainingTime(clock)
    estimates = []
    for done, seconds in enumerate(pace, start=1):
        clock.now += seconds
        estimates.append(remaining.update(done, total))
    return estimates


def test_even_pace_is_estimated_exactly() -> None:
    estimates = run([9.0] + [0.25] * 9, total=20)
    assert estimates[3:] == pytest.approx([0.25 * (20 - done) for done in range(4, 11)])


def test_no_estimate_without_evidence() -> None:
    assert run([2.0, 2.0], total=9) == [None, None]
    assert run([0.01] * 5, total=9) == [None] * 5


def test_nothing_is_left_at_the_end() -> None:
    assert run([0.01], total=1) == [0.0]


def test_recent_work_counts_more() -> None:
    slow_then_fast = run([1.0] * 10 + [0.1] * 50, total=120)[-1]
    assert 0.1 * 60 < slow_then_fast < 0.25 * 60, "the mean over all would say 0.25 s a unit"


def test_units_may_come_in_bundles() -> None:
    clock = Clock()
    remaining = RemainingTime(clock)
    for done in (1, 10, 30, 70):
        clock.now = done * 0.1
        estimate = remaining.update(done, 100)
    assert estimate == pytest.approx(3.0)
    assert remaining.units_per_second == pytest.approx(10.0)


def test_what_an_earlier_session_did_is_no_evidence() -> None:
    clock = Clock()
    remaining = RemainingTime(clock)
    remaining.update(900, 1000)
    for done in (910, 920, 930):
        clock.now += 1
        estimate = remaining.update(done, 1000)
    assert estimate == pytest.approx(7.0)


def test_no_progress_is_no_estimate() -> None:
    clock = Clock()
    remaining = RemainingTime(clock)
    for _ in range(5):
        clock.now += 1
        assert remaining.update(0, 10) is None
