"""The staircase and what it says of listeners whose hearing is known."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.listening.staircase import (
    TRIALS,
    Answer,
    Noticeable,
    Staircase,
    noticeable,
    right_share,
)

SCALE = np.linspace(0.0, 3.0, 13)
"""log2 of speed-ups from 1 to 8."""


def listened(centre: float, width: float, seed: int) -> tuple[Staircase, Noticeable]:
    """The staircase of a listener with this psychometric function."""
    chance = np.random.default_rng(seed)
    stairs = Staircase(len(SCALE))
    for _ in range(TRIALS):
        stairs.answer(bool(chance.random() < right_share(SCALE[stairs.place], centre, width)))
    return stairs, noticeable(stairs.answers, SCALE)


def test_three_right_answers_lead_closer_and_a_wrong_one_away() -> None:
    stairs = Staircase(13)
    assert stairs.place == 12
    places = []
    for right in (True, True, True, True, True, True, False, True, True, True):
        stairs.answer(right)
        places.append(stairs.place)
    assert places == [12, 12, 8, 8, 8, 4, 6, 6, 6, 5], "steps of 4, 2 after the first turn, 1 after the second"


def test_two_right_answers_before_a_wrong_one_do_not_count_later() -> None:
    stairs = Staircase(13)
    for right in (True, True, False, True, True):
        stairs.answer(right)
    assert stairs.place == 12
    stairs.answer(True)
    assert stairs.place < 12


@pytest.mark.parametrize("hears", [True, False])
def test_it_stays_in_the_row_for_who_hears_everything_or_nothing(hears: bool) -> None:
    stairs = Staircase(13)
    chance = np.random.default_rng(1)
    for _ in range(TRIALS):
        stairs.answer(hears or bool(chance.random() < 0.5))
        assert 0 <= stairs.place <= 12
    found = noticeable(stairs.answers, SCALE)
    if hears:
        assert found.high < SCALE[2] and found.beyond < 0.001
    else:
        assert found.beyond > 0.5


def test_trials_gather_where_a_listener_hears_barely() -> None:
    stairs, _ = listened(1.5, 0.1, seed=3)
    last = [SCALE[one.place] for one in stairs.answers[-12:]]
    assert 1.2 < np.mean(last) < 2.0


@pytest.mark.parametrize(("centre", "width"), [(0.8, 0.1), (1.5, 0.25), (2.4, 0.15)])
def test_the_interval_holds_the_truth_of_nearly_all_listeners(centre: float, width: float) -> None:
    found = [listened(centre, width, seed)[1] for seed in range(200)]
    held = np.mean([one.low <= centre <= one.high for one in found])
    assert held >= 0.92, "95 % promised; 200 listeners are between 92 and 98 %"
    assert abs(np.median([one.value for one in found]) - centre) < 0.15
    assert np.median([one.high - one.low for one in found]) < 1.2, "narrower than half of the row"


def test_what_nobody_heard_lies_beyond_the_row() -> None:
    deaf = [listened(9.0, 0.2, seed)[1].beyond for seed in range(100)]
    assert np.median(deaf) > 0.9
    assert np.median([listened(1.0, 0.2, seed)[1].beyond for seed in range(100)]) < 0.01


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="two places or more"):
        Staircase(1)
    with pytest.raises(ValueError, match="no answers"):
        noticeable([], SCALE)
    with pytest.raises(ValueError, match="rises"):
        noticeable([Answer(0, True)], [1.0, 1.0])
