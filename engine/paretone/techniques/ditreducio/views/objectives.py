"""DiTReducio as published against its calibration for the end of the trajectory: saving and cost of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from paretone.setting.knobs import Effect, Knob, Number
from paretone.setting.setting import UsedTechnique
from paretone.techniques import compatibility_of, ditreducio
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.views.thresholds import (
    PREDICTED,
    calibrate_all,
    calibrate_on_task,
    calibration_units,
    record_at_hand,
    threshold_knobs,
    with_table,
)
from paretone.views.figure import Axis, Curve, Lines
from paretone.views.view import Findings, ProgressStage, Stages, Task, View, sentences_knob
from paretone.wording import percent

PUBLISHED, OURS = "published: error of the step", "ours: end of the trajectory"


def knobs(layers: int) -> tuple[Knob, ...]:
    """Thresholds of the published calibration, budgets of ours, and on how many sentences each table is judged."""
    return (
        *threshold_knobs(count=4, tables=PREDICTED),
        Number(
            "smallest",
            "Smallest budget",
            "Budgets are spaced evenly down to this share of the baseline's operations.",
            default=40.0,
            unit="%",
            minimum=15.0,
            maximum=95.0,
            step=5.0,
            effect=Effect.NEXT_VIEW,
        ),
        Number(
            "budgets",
            "Budgets",
            "Number of budgets, each a separate calibration.",
            default=3,
            minimum=1,
            maximum=8,
            whole=True,
            effect=Effect.NEXT_VIEW,
        ),
        sentences_knob(3, "that every table speaks, to compare with the baseline"),
    )


@dataclass(frozen=True)
class Point:
    """One table: what it saves and what it costs."""

    label: str
    ops_ratio: float
    distance: float


def compute(task: Task) -> Findings:
    """Calibrate both ways, and speak all sentences under every table."""
    from paretone.techniques.ditreducio.end_calibration import end_units
    from paretone.views.quality import distance, judged_utterances, speak_all

    model, setting = task.model, task.setting.without(ditreducio.TECHNIQUE.name)
    layers, steps = model.info.layers, compatibility_of(task.flow.info, setting).steps
    sentences = judged_utterances(task.utterance, int(task.knobs["sentences"]))
    budgets = _budgets(float(task.knobs["smallest"]), int(task.knobs["budgets"]))
    record = record_at_hand(task)
    count, units, end = int(task.knobs["count"]), calibration_units(layers, steps), end_units(layers, steps)
    calibrations = count if task.knobs["tables"] != PREDICTED else int(record is None)
    spoken_units = 1.3 * steps * layers
    runs = (count + len(budgets) + 1) * len(sentences)
    work = Stages(task.observer, calibrations * units + len(budgets) * end + runs * spoken_units)
    baseline = speak_all(model, sentences, setting, work, spoken_units, "Baseline")
    found = calibrate_all(task, work, units, calibrate_on_task(task), "Published: ", record)
    tables = {PUBLISHED: {f"δ = {one:g}": table for one, table in found.tables.items()}, OURS: {}}
    ours = _calibrating_for_end(task)
    for budget in budgets:
        title = f"{budget:.0f} %"
        tables[OURS][title] = ours(budget, work.part(end, f"Ours: calibrating for {title} of the operations")).table
    points: dict[str, list[Point]] = {}
    for name, row in tables.items():
        for label, table in row.items():
            used = with_table(task, float(ditreducio.THRESHOLD.default), table).setting
            spoken = speak_all(model, sentences, used, work, spoken_units, f"{name}, {label}", (table,))
            ratio = fmean(one.measurements.ops_ratio for one in spoken)
            points.setdefault(name, []).append(Point(label, ratio, distance(baseline, spoken)))
    return Findings((_panel(points),), _caption(points, len(sentences), found.words), 1, sentences)


def _budgets(smallest: float, count: int) -> tuple[float, ...]:
    """Shares in per cent, descending."""
    return tuple(100 - (100 - smallest) * (at + 1) / count for at in range(count))


def _calibrating_for_end(task: Task) -> Callable[[float, ProgressStage], CalibrationRecord]:
    from paretone.techniques.ditreducio.preparation import calibrate_model, knobs_of

    given = knobs_of(task.setting)

    def calibrate(budget: float, observer: ProgressStage) -> CalibrationRecord:
        values = given.replace(objective=ditreducio.END, operations=budget)
        setting = task.setting.with_technique(UsedTechnique(ditreducio.TECHNIQUE.name, values))
        return calibrate_model(task.model, [task.utterance], setting, observer)

    return calibrate


def _panel(points: dict[str, list[Point]]) -> Lines:
    return Lines(
        "Saving and cost",
        Axis("Operations of the baseline", "%"),
        Axis("Log-mel distance to the baseline", "natural-log units"),
        tuple(
            Curve(
                name,
                tuple(100 * one.ops_ratio for one in row),
                tuple(one.distance for one in row),
                notes=tuple(one.label for one in row),
            )
            for name, row in points.items()
        ),
    )


def _caption(points: dict[str, list[Point]], sentences: int, exactness: str) -> str:
    last = points[OURS][-1]
    nearest = min(points[PUBLISHED], key=lambda one: abs(one.ops_ratio - last.ops_ratio))
    return (
        f"At {percent(last.ops_ratio)} of the operations a table calibrated for the end is {last.distance:.3f} from "
        f"the baseline; the published table nearest to it, at {percent(nearest.ops_ratio)}, is {nearest.distance:.3f}. "
        f"Means over {sentences} sentences other than the selected one, on which ours is calibrated. {exactness}"
    )


VIEW = View(
    name="objectives",
    title="Published against ours",
    question="How far from the baseline does each way of choosing skips lead, at equal operations?",
    source="DiTReducio (arXiv 2509.09748), section 3.4; calibrating for the end of the trajectory is ours",
    families=("flow",),
    knobs=knobs,
    compute=compute,
)
