"""Draft lengths that adapt to measured acceptance and times."""

from __future__ import annotations

import pytest

from paretone.sampling.draft_length import LONGEST, AdaptiveLength, expected_tokens, predicted_speed_up


def best_length(acceptance: float, cost: float, growth: float) -> int:
    """The draft length with the greatest predicted speed-up, where each drafted token adds ``growth`` to a target
    pass."""

    def speed_up(length: int) -> float:
        return predicted_speed_up(expected_tokens(acceptance, length), length, cost, 1 + growth * length)

    return max(range(1, LONGEST + 1), key=speed_up)


def fed(acceptance: float, cost: float, growth: float, cycles: int = 200) -> AdaptiveLength:
    """One that saw cycles in which ``acceptance`` of the checked tokens stayed; a target pass over one token takes 1,
    a draft pass ``cost``, each further token of a target pass ``growth``."""
    length = AdaptiveLength()
    due = 0.0
    for _ in range(cycles):
        drafted = length.choose()
        accepted = 0
        while accepted < drafted:
            due += acceptance
            if due < 1:
                break
            due -= 1
            accepted += 1
        checked = min(accepted + 1, drafted)
        length.observe(drafted, checked, accepted, drafted * cost, 1 + growth * drafted)
    return length


@pytest.mark.parametrize("acceptance", [0.3, 0.62, 0.8, 0.95])
@pytest.mark.parametrize("cost", [0.1, 0.35, 0.5])
@pytest.mark.parametrize("growth", [0.0, 0.1])
def test_it_settles_where_the_plan_is_best(acceptance: float, cost: float, growth: float) -> None:
    length = fed(acceptance, cost, growth)
    best = best_length(acceptance, cost, growth)
    assert abs(length.choose() - best) <= 1
    assert length.acceptance == pytest.approx(acceptance, abs=0.12)
    assert length.cost_ratio == pytest.approx(cost, rel=0.2)


def test_equal_measurements_give_equal_lengths() -> None:
    first, again = fed(0.7, 0.3, 0.05), fed(0.7, 0.3, 0.05)
    assert first.choose() == again.choose()


def test_it_follows_a_change() -> None:
    length = fed(0.9, 0.2, 0.05)
    long = length.choose()
    for _ in range(100):
        length.observe(length.choose(), 1, 0, 0.2 * length.choose(), 1 + 0.05 * length.choose())
    assert length.choose() == 1 < long


def test_an_interrupted_cycle_does_not_count() -> None:
    length = fed(0.8, 0.3, 0.05)
    before = length.choose()
    length.observe(before, before, before, 40.0, 90.0)
    assert length.choose() == before


def test_cycles_without_a_draft_teach_nothing() -> None:
    length = AdaptiveLength(2)
    length.observe(0, 0, 0, 0.0, 1.0)
    assert length.choose() == 2 and length.cost_ratio is None


@pytest.mark.parametrize("start", [0, 9])
def test_lengths_out_of_range(start: int) -> None:
    with pytest.raises(ValueError, match="not from 1 to 8"):
        AdaptiveLength(start)
