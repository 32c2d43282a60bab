"""Searching the times of a grid."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.sampling.grid_search import METHODS, OPTIMAL, Times, Trial, Value, most_trials, rounded, search
from paretone.sampling.schedules import uniform_times

BEND = 5.0


def euler_error(times: Times) -> Value:
    """Error of Euler's method on x' = BEND·e^(−BEND·t), whose end is 1 − e^(−BEND)."""
    steps = itertools.pairwise(times)
    found = sum((end - start) * BEND * math.exp(-BEND * start) for start, end in steps)
    return (abs(found - (1 - math.exp(-BEND))),)


def uniform(steps: int) -> Times:
    return rounded(uniform_times(steps).tolist())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", [2, 4, 7])
def test_it_finds_a_better_grid_than_even_steps(method: str, steps: int) -> None:
    found = search(method, euler_error, [uniform(steps)], passes=6)
    assert found.value[0] < 0.8 * euler_error(uniform(steps))[0]
    assert found.value == euler_error(found.times)
    gaps = np.diff(found.times)
    assert gaps[0] < gaps[-1], "short steps where the velocity bends"


@pytest.mark.parametrize("method", METHODS)
def test_one_free_time_is_placed_where_it_is_best(method: str) -> None:
    best = min((euler_error((0.0, time, 1.0)), time) for time in np.linspace(0.01, 0.99, 981).tolist())
    found = search(method, euler_error, [uniform(2)], passes=8)
    assert found.value[0] == pytest.approx(best[0][0], rel=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_it_is_never_worse_than_its_start(method: str) -> None:
    """Whatever the objective: here noise over the times, and one that is no number but at the start."""
    for seed in range(4):

        def noise(times: Times, seed: int = seed) -> Value:
            return (math.sin(1e4 * sum(time**2 for time in times) + seed),)

        assert search(method, noise, [uniform(5)], passes=2).value <= noise(uniform(5))
    start = uniform(4)
    found = search(method, lambda times: (0.0 if times == start else math.nan,), [start], passes=2)
    assert found.times == start and found.value == (0.0,)


def test_the_best_of_several_starts_is_taken() -> None:
    bent = rounded((1 - np.cos(np.pi / 2 * uniform_times(4))).tolist())
    tried: list[Trial] = []
    search(OPTIMAL, euler_error, [uniform(4), bent], 1, tried.append)
    assert [one.times for one in tried[:2]] == [uniform(4), bent]
    assert [one.best for one in tried[:2]] == [True, euler_error(bent) < euler_error(uniform(4))]
    assert all(one.pass_number == 1 and one.moved for one in tried[2:])


@pytest.mark.parametrize("method", METHODS)
def test_no_grid_is_tried_twice_and_all_rise(method: str) -> None:
    tried: list[Trial] = []
    search(method, euler_error, [uniform(5)], 3, tried.append)
    assert len({one.times for one in tried}) == len(tried)
    assert all(np.all(np.diff(one.times) > 0) and one.times[0] == 0 and one.times[-1] == 1 for one in tried)
    bests = [one.value for one in tried if one.best]
    assert bests == sorted(bests, reverse=True)


def test_o3s_takes_no_more_trials_than_foreseen() -> None:
    tried: list[Trial] = []
    search(OPTIMAL, euler_error, [uniform(6)], 2, tried.append)
    assert 40 < len(tried) - 1 <= most_trials(OPTIMAL, 6, 2)


def test_equal_figures_are_decided_by_the_next() -> None:
    def words_then_distance(times: Times) -> Value:
        return (0.0, *euler_error(times))

    plain, found = (search(OPTIMAL, one, [uniform(4)], 2) for one in (euler_error, words_then_distance))
    assert found.times == plain.times


def test_a_search_can_be_stopped() -> None:
    def stop(trial: Trial) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        search(OPTIMAL, euler_error, [uniform(4)], 2, stop)


@pytest.mark.parametrize("times", [(0.0, 0.6, 0.5, 1.0), (0.1, 1.0), (0.0, 0.5), (0.0,), (0.0, 0.5, 0.5, 1.0)])
def test_times_must_rise_from_0_to_1(times: Times) -> None:
    with pytest.raises(SettingError, match="must rise from 0 to 1"):
        rounded(times)


def test_another_method_is_refused() -> None:
    with pytest.raises(SettingError, match="o3s or coordinate"):
        search("random", euler_error, [uniform(4)], 1)
