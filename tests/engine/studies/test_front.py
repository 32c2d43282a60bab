"""The non-dominated front, against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.studies.results import costs_of, front


def by_definition(costs: np.ndarray) -> list[bool]:
    return [not any((other <= one).all() and (other < one).any() for other in costs) for one in costs]


@pytest.mark.parametrize("objectives", [1, 2, 3, 4])
def test_against_the_definition(objectives: int) -> None:
    # Of few values, so that many points are equal in something.
    costs = np.random.default_rng(objectives).integers(0, 9, (200, objectives)).astype(float)
    assert front(costs).tolist() == by_definition(costs)


def test_equal_points_are_all_on_it() -> None:
    assert front(np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 2.0]])).tolist() == [True, True, False]


def test_what_is_not_a_number_is_on_no_front() -> None:
    costs = np.array([[np.nan, 0.0], [1.0, 1.0], [np.inf, -1.0]])
    assert front(costs).tolist() == [False, True, False]
    assert front(np.zeros((0, 2))).tolist() == []
    with pytest.raises(ValueError, match="objectives"):
        front(np.zeros(3))


def test_directions() -> None:
    values = np.array([[1.0, 0.9], [2.0, 0.5]])
    assert front(costs_of(values, ("lower", "higher"))).tolist() == [True, False]
    assert front(costs_of(values, ("lower", "lower"))).tolist() == [True, True]
