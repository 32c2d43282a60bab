"""From a strategy table to what every module does and keeps. Torch-free but for :mod:`paretone.sampling.skipping`."""

from __future__ import annotations

from paretone.sampling.skipping import SkipPlan
from paretone.techniques.ditreducio.table import StrategyTable


def skip_plan(table: StrategyTable) -> SkipPlan:
    """The plan of a strategy table."""
    times = table.times if table.temporal == "forecast" else None
    return SkipPlan(table.actions, spare_feed_forward=table.branch_skip == "attention", forecast_along=times)
