"""Rankings by preference of listeners whose preferences are known."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.listening.ranking import Preferred, pairs, ranking

STRENGTHS = np.array([1.5, 0.5, 0.0, -0.5, -1.5])


def preferred(times: int, seed: int, strengths: np.ndarray = STRENGTHS) -> list[Preferred]:
    """All pairs, ``times`` times, as a listener of these strengths decides."""
    chance = np.random.default_rng(seed)
    made = []
    for round_ in range(times):
        for first, second in pairs(len(strengths), 100 * seed + round_):
            won = chance.random() < 1 / (1 + np.exp(strengths[second] - strengths[first]))
            made.append(Preferred(first, second) if won else Preferred(second, first))
    return made


def test_the_order_is_found_and_the_best_is_probable() -> None:
    found = ranking(5, preferred(20, seed=1))
    assert [one.number for one in found] == [0, 1, 2, 3, 4]
    assert found[0].best > 0.95 and found[-1].best < 0.01
    assert sum(one.best for one in found) == pytest.approx(1)
    assert np.mean([one.strength for one in found]) == pytest.approx(0, abs=1e-9)
    assert all(one.compared == 80 for one in found)


def test_intervals_hold_the_truth() -> None:
    held = [
        one.low <= STRENGTHS[one.number] <= one.high
        for seed in range(60)
        for one in ranking(5, preferred(4, seed=seed))
    ]
    assert np.mean(held) >= 0.93


def test_who_always_wins_stays_finite_and_uncertain() -> None:
    few = ranking(2, [Preferred(1, 0)] * 3)
    many = ranking(2, [Preferred(1, 0)] * 30)
    assert few[0].number == many[0].number == 1
    assert 0 < few[0].strength < many[0].strength < 5
    assert few[0].low < 0 < many[0].low


def test_nobody_is_ranked_without_comparisons_and_ties_say_equal() -> None:
    for comparisons in ([], [Preferred(0, 1, tie=True)] * 8):
        found = ranking(3, comparisons)
        assert all(one.strength == pytest.approx(0) and one.low < 0 < one.high for one in found)
    decided, open_ = ranking(3, [Preferred(0, 1, tie=True)] * 8)[0], ranking(3, [])[0]
    assert decided.high - decided.low < open_.high - open_.low


def test_pairs_are_all_pairs_either_way_round() -> None:
    found = pairs(6, seed=4)
    assert len(found) == 15 and {frozenset(one) for one in found} == {frozenset(one) for one in pairs(6, seed=5)}
    assert found != pairs(6, seed=5)
    assert 7 <= sum(first < second for first, second in found) <= 8


@pytest.mark.parametrize("wrong", [Preferred(1, 1), Preferred(0, 3), Preferred(-1, 0)])
def test_what_cannot_be_compared_is_refused(wrong: Preferred) -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        ranking(3, [wrong])
