from __future__ import annotations

import itertools

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.measure.fidelity import best_path, warped_log_mel_distance


def _cheapest(costs: np.ndarray) -> float:
    """By trying every path."""
    rows, columns = costs.shape

    def rest(row: int, column: int) -> float:
        here = costs[row, column]
        if (row, column) == (rows - 1, columns - 1):
            return here
        steps = [(row + 1, column), (row, column + 1), (row + 1, column + 1)]
        return here + min(rest(*one) for one in steps if one[0] < rows and one[1] < columns)

    return rest(0, 0)


@pytest.mark.parametrize(("rows", "columns"), list(itertools.product((1, 2, 5), (1, 3, 6))))
def test_the_path_is_the_cheapest_and_goes_forward_without_a_gap(rows: int, columns: int):
    costs = np.random.default_rng(rows * 10 + columns).random((rows, columns))
    path = best_path(costs)
    assert costs[path[:, 0], path[:, 1]].sum() == pytest.approx(_cheapest(costs))
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [rows - 1, columns - 1]
    steps = np.diff(path, axis=0)
    assert ((steps >= 0) & (steps <= 1)).all()
    assert (steps.sum(1) >= 1).all()


def test_the_same_words_said_slower_are_near_and_others_are_not():
    draw = np.random.default_rng(0)
    speech = np.repeat(draw.normal(0, 2, (12, 20)), 4, axis=0)
    slower = np.repeat(speech, 2, axis=0)
    other = np.repeat(draw.normal(0, 2, (12, 20)), 4, axis=0)
    assert warped_log_mel_distance(speech, slower) == 0
    assert warped_log_mel_distance(speech, slower + 0.1) == pytest.approx(0.1)
    assert warped_log_mel_distance(speech, other) > 1


def test_what_cannot_be_aligned_is_refused():
    with pytest.raises(SettingError, match="cannot be aligned"):
        warped_log_mel_distance(np.zeros((3, 100)), np.zeros((3, 80)))
    with pytest.raises(SettingError, match="cannot be aligned"):
        warped_log_mel_distance(np.zeros((0, 100)), np.zeros((3, 100)))
