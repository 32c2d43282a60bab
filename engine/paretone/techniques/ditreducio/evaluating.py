"""A strategy table at work: the evaluations that it asks for."""

from __future__ import annotations

from collections.abc import Callable

from paretone.models.families.evaluations import Stage
from paretone.sampling.flow import Evaluator, Planned
from paretone.techniques.ditreducio.skip_plan import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable


def evaluators(stage: Stage, table: StrategyTable) -> Callable[[], Evaluator]:
    """See :attr:`paretone.setting.plan.FlowPlan.evaluator`."""
    return lambda: Planned(stage.backbone, skip_plan(table), table.layers)
