"""Strategy tables over thresholds side by side: figure 9 of the DiTReducio paper."""

from __future__ import annotations

from collections.abc import Iterable

from paretone.sampling.actions import SkipAction
from paretone.speaking import scripted
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.ditreducio.views.thresholds import (
    Calibrations,
    calibrate_all,
    calibrate_on_task,
    calibration_units,
    calibrations_needed,
    record_at_hand,
    threshold_knobs,
)
from paretone.views.figure import Axis, HeatMap
from paretone.views.view import Findings, Stages, Task, View
from paretone.wording import percent

NAMES = {SkipAction.NONE: "compute", SkipAction.TS: "temporal skip", SkipAction.BS: "branch skip"}


def compute(task: Task) -> Findings:
    """As many calibrations as are asked for."""
    steps = compatibility_of(task.flow.info, task.setting).steps
    units = calibration_units(task.model.info.layers, steps)
    work = Stages(task.observer, units * calibrations_needed(task))
    found = calibrate_all(task, work, units, calibrate_on_task(task), record=record_at_hand(task))
    operations = task.flow.operations(
        scripted(task.flow, task.utterance.text, task.utterance.voice, task.setting, prepared=False)
    )
    ratios = {threshold: table.ops_ratio(operations) for threshold, table in found.tables.items()}
    panels = tuple(
        _panel(f"δ = {threshold:g}, ops {percent(ratios[threshold])}", table)
        for threshold, table in found.tables.items()
    )
    return Findings(panels, _caption(found, ratios), across=3)


def _panel(title: str, table: StrategyTable) -> HeatMap:
    return HeatMap(
        title,
        Axis("Step"),
        Axis("Layer"),
        Axis("Action"),
        tuple(float(step + 1) for step in range(table.steps)),
        tuple(float(layer + 1) for layer in range(table.layers)),
        tuple(tuple(float(action) for action in row) for row in table.actions),
        tuple(NAMES.values()),
    )


def _caption(found: Calibrations, ratios: dict[float, float]) -> str:
    first, last = min(found.tables), max(found.tables)
    words = (
        f"From δ = {first:g} to {last:g} the skipped cells rise from {percent(found.tables[first].skipped_share)} to "
        f"{percent(found.tables[last].skipped_share)}, and the operations fall from {percent(ratios[first])} to "
        f"{percent(ratios[last])} of the baseline's. "
    )
    early, late = (_temporal_share(found.tables.values(), late) for late in (False, True))
    if early != late:
        more = "later" if late > early else "earlier"
        words += (
            f"{more.capitalize()} steps repeat themselves more: {percent(early)} temporal skips in the first half of "
            f"the steps, {percent(late)} in the second{' (the paper finds the same)' if late > early else ''}. "
        )
    return words + found.words


def _temporal_share(tables: Iterable[StrategyTable], late: bool) -> float:
    """Share of temporal skips in half of the steps that may skip, over all tables."""
    cells: list[SkipAction] = []
    for table in tables:
        middle = 1 + (table.steps - 1) // 2
        for row in table.actions:
            cells += row[middle:] if late else row[1:middle]
    return cells.count(SkipAction.TS) / max(1, len(cells))


VIEW = View(
    name="tables",
    title="Strategy tables",
    question="Which modules are skipped as the threshold rises?",
    source="DiTReducio (arXiv 2509.09748), figure 9",
    families=("flow",),
    knobs=lambda layers: threshold_knobs(),
    compute=compute,
)
