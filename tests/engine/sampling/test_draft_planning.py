"""The planner, against the table that the paper's figures imply, and against simulated cycles."""

from __future__ import annotations

import random

import pytest

from paretone.sampling.draft_length import expected_tokens, predicted_speed_up


@pytest.mark.parametrize(
    ("acceptance", "cost", "expected"),
    [
        (0.62, 0.44, (1.13, 1.07, 0.97, 0.87)),
        (0.765, 0.35, (1.31, 1.38, 1.37, 1.31)),
        (0.86, 0.44, (1.29, 1.38, 1.40, 1.37)),
    ],
)
def test_speed_ups_of_drafts_one_to_four(acceptance: float, cost: float, expected: tuple[float, ...]) -> None:
    found = [predicted_speed_up(expected_tokens(acceptance, length), length, cost) for length in range(1, 5)]
    assert found == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.9, 1.0])
def test_expected_tokens_are_those_of_simulated_cycles(acceptance: float) -> None:
    chance, total = random.Random(1), 0
    for _ in range(4000):
        accepted = 0
        while accepted < 3 and chance.random() < acceptance:
            accepted += 1
        total += accepted + 1
    assert expected_tokens(acceptance, 3) == pytest.approx(total / 4000, abs=0.06)


@pytest.mark.parametrize("acceptance", [-0.1, 1.1])
def test_no_probability(acceptance: float) -> None:
    with pytest.raises(ValueError, match="not a probability"):
        expected_tokens(acceptance, 3)
