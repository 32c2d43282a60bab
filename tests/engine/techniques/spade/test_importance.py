"""Importance with its bootstrap: intervals of the figures and of the ranking."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.models.files.layer_importance import DIVERGENCE, WORD_ERROR
from paretone.techniques.spade.importance import bootstrapped


def test_the_figures_are_means_over_utterances() -> None:
    each = np.array([[1.0, 0.0], [3.0, 0.5]])
    found = bootstrapped(DIVERGENCE, each)
    assert found.values == (2.0, 0.25)
    assert found.utterances == 2
    assert found.low == (1.0, 0.0) and found.high == (3.0, 0.5)


def test_word_error_rates_are_weighted_by_words() -> None:
    found = bootstrapped(WORD_ERROR, np.array([[1.0], [0.0]]), np.array([3, 9]), baseline=0.1)
    assert found.values[0] == pytest.approx(0.25)
    assert found.baseline == 0.1


def test_a_clear_ranking_is_certain_and_a_tie_is_not() -> None:
    generator = np.random.default_rng(1)
    noise = generator.normal(0, 1, (12, 3))
    found = bootstrapped(DIVERGENCE, noise * [0.01, 1, 1] + [10, 0, 0])
    assert found.ranks[0] == (0, 0)
    assert found.ranks[1] == found.ranks[2] == (1, 2)


def test_equal_utterances_give_no_spread() -> None:
    found = bootstrapped(DIVERGENCE, np.ones((5, 2)) * [2.0, 1.0])
    assert found.low == found.values == found.high
    assert found.ranks == ((0, 0), (1, 1))


def test_equal_layers_share_their_ranks() -> None:
    found = bootstrapped(WORD_ERROR, np.tile([0.8, 0.0, 0.0, 0.0], (5, 1)), np.full(5, 9))
    assert found.ranks == ((0, 0), (1, 3), (1, 3), (1, 3))


def test_the_same_figures_give_the_same_intervals() -> None:
    each = np.random.default_rng(2).random((6, 4))
    assert bootstrapped(DIVERGENCE, each) == bootstrapped(DIVERGENCE, each)
