"""Paired timing: the order of runs, the intervals, and what the clocks see."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest

from paretone.measure.timing import interval, paired_ratio, running_order, stopwatch


def test_order_rotates_and_reverses() -> None:
    orders = [running_order("abc", number) for number in range(6)]
    assert orders == [tuple(one) for one in ("abc", "acb", "cab", "cba", "bca", "bac")]
    assert len(set(orders)) == 6, "with three variants, six rounds see every order"


def test_two_take_turns_in_going_first() -> None:
    assert ["".join(running_order("ab", number)) for number in range(5)] == ["ab", "ba", "ba", "ab", "ab"]
    four = [running_order("abcd", number) for number in range(8)]
    assert len(set(four)) == 8
    assert all(sum(order.index(name) for order in four) == 12 for name in "abcd"), "each has the same mean place"


def test_every_variant_runs_once_a_round_and_the_baseline_twice() -> None:
    runs: Counter[str] = Counter()
    seen = []
    comparison = paired_ratio(
        {name: lambda name=name: runs.update([name]) or sum(range(2000)) for name in ("naive", "fast")},
        rounds=5,
        warm_up=2,
        on_round=seen.append,
    )
    assert runs == {"naive": 2 + 10, "fast": 2 + 5}
    assert seen == [1, 2, 3, 4, 5]
    assert comparison.baseline == "naive"
    assert {name: len(seconds) for name, seconds in comparison.seconds.items()} == {"naive": 5, "fast": 5}
    assert set(comparison.speed_up) == {"fast"}
    assert comparison.clock == "CPU seconds of the process"


def test_ratio_is_the_median_of_ratios_within_rounds() -> None:
    work = {"slow": 60_000, "fast": 20_000}
    comparison = paired_ratio({name: lambda n=n: sum(range(n)) for name, n in work.items()}, rounds=7)
    ratios = comparison.ratios("fast")
    assert ratios == tuple(
        one / two for one, two in zip(comparison.seconds["slow"], comparison.seconds["fast"], strict=True)
    )
    found = comparison.speed_up["fast"]
    assert found.median == pytest.approx(np.median(ratios))
    assert found.low <= found.median <= found.high
    assert min(ratios) <= found.low
    assert found.high <= max(ratios)


def test_cpu_clock_does_not_count_waiting() -> None:
    with stopwatch() as watch:
        time.sleep(0.2)
    assert watch.wall_seconds >= 0.2
    assert watch.seconds < watch.wall_seconds / 2


def test_interval_covers_the_true_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    intervals = [interval(random.lognormal(0, 0.1, 15).tolist()) for _ in range(300)]
    covered = np.mean([one.low <= 1 <= one.high for one in intervals])
    assert 0.88 <= covered <= 0.99
    assert np.mean([one.excludes_one for one in intervals]) == pytest.approx(1 - covered)


def test_interval_of_equal_values_is_that_value() -> None:
    found = interval([2.0] * 9)
    assert (found.median, found.low, found.high) == (2.0, 2.0, 2.0)
    assert found.excludes_one


def test_comparison_needs_two_variants() -> None:
    with pytest.raises(ValueError, match="two variants"):
        paired_ratio({"only": int})
