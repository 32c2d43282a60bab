"""Forecasts of skipped outputs against their definition: a straight line through the last two computed ones."""

from __future__ import annotations

import pytest
import torch

from paretone.sampling.actions import SkipAction, extrapolation_factors
from paretone.sampling.skipping import LayerMemory, apply_module
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable

N, T, B = SkipAction.NONE, SkipAction.TS, SkipAction.BS
TIMES = (0.0, 0.1, 0.3, 0.4, 0.8, 1.0)


def table(*row: SkipAction, temporal: str = "forecast", branch_skip: str = "both") -> StrategyTable:
    sampling = Values(steps=len(row), spacing="uniform", sway=-1.0)
    return StrategyTable(Compatibility("m", "f", "v", sampling), (row,), branch_skip, temporal=temporal)


def test_reach_is_counted_in_time_not_in_steps() -> None:
    assert extrapolation_factors((N, T, N, T, T), TIMES) == pytest.approx(
        [0, 0, 0, (0.4 - 0.3) / 0.3, (0.8 - 0.3) / 0.3]
    )
    assert extrapolation_factors((N, B, T, N, T), TIMES) == pytest.approx([0, 0, 2.0, 0, 0.4 / 0.3])


@pytest.mark.parametrize("row", [(N, N, T, T, N, T), (N, T, N, T, B, T), (N, B, T, N, N, T)])
@pytest.mark.parametrize("branches", [1, 2, 3])
@pytest.mark.parametrize("branch_skip", ["both", "attention"])
def test_outputs_that_move_evenly_are_forecast_exactly(row: tuple, branches: int, branch_skip: str) -> None:
    """All branches' outputs are linear in time, the others at a constant distance from the first: every skip but those
    before two computed outputs then changes nothing."""
    made = table(*row, branch_skip=branch_skip)
    plan, memory, times = skip_plan(made), LayerMemory(), made.times
    start = torch.randn(branches, 1, 4, 3, dtype=torch.float64)
    slope = torch.randn(1, 1, 4, 3, dtype=torch.float64)
    early = row.index(T) < 2
    for step in range(len(row)):
        full = (start + slope * times[step]).flatten(0, 1)
        layer_plan = plan.at(step)[0]
        for one, kept in ((layer_plan.attention, memory.attention), (layer_plan.feed_forward, memory.feed_forward)):
            hidden = apply_module(
                torch.zeros_like(full), torch.ones(3), lambda rows, of=full: of[: len(rows)], one, kept, branches
            )
            if not (early and step == 1):
                assert torch.allclose(hidden, full), f"step {step}"


def test_reuse_keeps_no_more_than_before() -> None:
    for plan in (layers[0] for layers in map(skip_plan(table(N, N, T, N, T, temporal="reuse")).at, range(5))):
        assert not plan.attention.keep_change and plan.attention.extrapolation_factor == 0


def test_what_a_change_is_counted_from_is_kept() -> None:
    plan = skip_plan(table(N, N, N, T, N))
    assert [plan.at(step)[0].attention.keep_output for step in range(5)] == [False, True, True, False, False]
    assert [plan.at(step)[0].attention.keep_change for step in range(5)] == [False, False, True, False, False]
