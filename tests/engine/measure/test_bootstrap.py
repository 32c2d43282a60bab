"""The percentile bootstrap."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.measure.estimates import bootstrap, ends, mean_ratio, picks, rate


def _mean(drawn: np.ndarray) -> np.ndarray:
    return drawn.mean(1)


def test_a_mean_has_the_interval_of_the_normal_distribution() -> None:
    values = np.random.default_rng(3).normal(5.0, 2.0, 400)

    mean, low, high = bootstrap(_mean, values, draws=4000)

    half = 1.96 * values.std() / np.sqrt(len(values))
    assert mean == pytest.approx(values.mean())
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=half / 10)


def test_equal_findings_have_equal_intervals_and_another_seed_draws_others() -> None:
    values = np.random.default_rng(0).normal(size=30)

    assert bootstrap(_mean, values, draws=200) == bootstrap(_mean, values.copy(), draws=200)
    assert bootstrap(_mean, values, draws=200) != bootstrap(_mean, values, draws=200, seed=1)


def test_findings_are_drawn_in_pairs() -> None:
    below = np.random.default_rng(1).uniform(1, 9, 20)

    assert bootstrap(mean_ratio, 2 * below, below, draws=300) == pytest.approx((2, 2, 2))


def test_a_rate_is_all_counts_over_all_sizes() -> None:
    value, low, high = bootstrap(rate, np.array([1, 0, 4]), np.array([10, 10, 20]), draws=500)

    assert value == pytest.approx(5 / 40)
    assert low == pytest.approx(0.0) and high == pytest.approx(0.2)


def test_draws_repeat_what_there_is_and_ends_are_taken_of_each_column() -> None:
    chosen = picks(4, draws=1000)
    low, high = ends(np.stack([chosen.mean(1), chosen.mean(1) + 10], axis=1))

    assert chosen.shape == (1000, 4) and set(chosen.ravel().tolist()) == {0, 1, 2, 3}
    assert high - low == pytest.approx((high - low)[0])
    assert low[1] == pytest.approx(low[0] + 10)
