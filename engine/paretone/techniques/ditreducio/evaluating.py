"""Application of a strategy table: the skip plan and its evaluations."""

from __future__ import annotations

from collections.abc import Callable

from paretone.models.families.evaluations import Stage
from paretone.sampling.flow import Evaluator, Planned
from paretone.sampling.skipping import SkipPlan
from paretone.techniques.ditreducio.table import StrategyTable


def skip_plan(table: StrategyTable) -> SkipPlan:
    times = table.times if table.temporal == "forecast" else None
    return SkipPlan(table.actions, spare_feed_forward=table.branch_skip == "attention", forecast_along=times)


def evaluators(stage: Stage, table: StrategyTable) -> Callable[[], Evaluator]:
    """See :attr:`paretone.setting.plan.FlowPlan.evaluator`."""
    return lambda: Planned(stage.backbone, skip_plan(table), table.layers)
