"""Ablation of DiTReducio's parts: figure 6 of the DiTReducio paper.

Every variant is calibrated on its own: taking a part away changes every later decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import Knob
from paretone.speaking import scripted
from paretone.techniques import compatibility_of, ditreducio
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.views.thresholds import (
    CALIBRATED,
    Calibrations,
    calibrate_all,
    calibration_units,
    record_at_hand,
    threshold_knobs,
    with_table,
)
from paretone.views.figure import Axis, Curve, Lines
from paretone.views.view import Findings, ProgressStage, Stages, Task, View, sentences_knob
from paretone.wording import percent


@dataclass(frozen=True)
class Variant:
    """DiTReducio with parts of it taken away."""

    title: str
    candidates: tuple[SkipAction, ...]
    pre_calibrates: bool


FULL = Variant("full", (SkipAction.TS, SkipAction.BS), True)
VARIANTS = (
    FULL,
    Variant("without pre-calibration", (SkipAction.TS, SkipAction.BS), False),
    Variant("temporal skipping only", (SkipAction.TS,), True),
    Variant("branch skipping only", (SkipAction.BS,), False),
)


def knobs(layers: int) -> tuple[Knob, ...]:
    """Thresholds, and on how many sentences each table is judged."""
    return (
        *threshold_knobs(count=4, tables=CALIBRATED),
        sentences_knob(3, "that every table speaks, to compare with the baseline and to judge"),
    )


@dataclass(frozen=True)
class AblationPoint:
    """One table: what it saves and what it costs."""

    threshold: float
    ops_ratio: float
    distance: float
    word_error_rate: float | None
    interval: tuple[float, float] = (0.0, 0.0)


def compute(task: Task) -> Findings:
    """Calibrate every variant, speak all sentences under every table, and hold them against the baseline."""
    from paretone.techniques.ditreducio.preparation import knobs_of
    from paretone.views.quality import distance, judge_of, judged_utterances, speak_all, word_errors

    model, setting = task.model, task.setting.without(ditreducio.TECHNIQUE.name)
    layers, steps = model.info.layers, compatibility_of(task.flow.info, setting).steps
    sentences = judged_utterances(task.utterance, int(task.knobs["sentences"]))
    branches = task.flow.operations(
        scripted(task.flow, task.utterance.text, task.utterance.voice, setting, prepared=False)
    ).branches
    variants = [one for one in VARIANTS if branches > 1 or one.candidates != (SkipAction.BS,)]
    count, units = int(task.knobs["count"]), calibration_units(layers, steps)
    each = count if task.knobs["tables"] == CALIBRATED else 1
    spoken_units = 1.3 * steps * layers
    runs = (len(variants) * count + 1) * len(sentences)
    work = Stages(task.observer, len(variants) * each * units + runs * spoken_units)
    judge = judge_of(sentences)
    baseline = speak_all(model, sentences, setting, work, spoken_units, "Baseline")
    floor = None if judge is None else word_errors(judge, sentences, baseline)
    points: dict[str, list[AblationPoint]] = {}
    calibrations = []
    for variant in variants:
        record = record_at_hand(task) if variant is FULL else None
        found = calibrate_all(task, work, units, _calibrate(task, variant), f"{variant.title.capitalize()}: ", record)
        calibrations.append(found)
        for threshold, table in found.tables.items():
            used = with_table(task, threshold, table).setting
            title = f"{variant.title.capitalize()} at threshold {threshold:g}"
            spoken = speak_all(model, sentences, used, work, spoken_units, title, (table,))
            heard = None if judge is None else word_errors(judge, sentences, spoken)
            points.setdefault(variant.title, []).append(
                AblationPoint(
                    threshold,
                    fmean(one.measurements.ops_ratio for one in spoken),
                    distance(baseline, spoken),
                    None if heard is None else heard.rate,
                    (0.0, 0.0) if heard is None else heard.interval(),
                )
            )
    unit = ditreducio.UNITS[str(knobs_of(task.setting)["metric"])]
    panels = _panels(points, None if floor is None else floor.rate, unit)
    return Findings(panels, _caption(points, floor is not None, calibrations, len(sentences)), 2, sentences)


def _calibrate(task: Task, variant: Variant) -> Callable[[float, ProgressStage], CalibrationRecord]:
    import torch

    from paretone.techniques.ditreducio.calibration import calibrate
    from paretone.techniques.ditreducio.preparation import knobs_of, prepared, scripts_of

    knobs = knobs_of(task.setting)
    targets, _ = prepared(task.model, scripts_of(task.model, [task.utterance], task.setting))

    def calibrated(threshold: float, observer: ProgressStage) -> CalibrationRecord:
        with torch.inference_mode():
            return calibrate(
                targets,
                knobs.replace(threshold=threshold),
                observer,
                candidates=variant.candidates,
                pre_calibrates=variant.pre_calibrates,
            )

    return calibrated


def _panels(points: Mapping[str, Sequence[AblationPoint]], floor: float | None, unit: str) -> tuple[Lines, ...]:
    saved = Axis("Operations of the baseline", "%")

    def curves(
        along: Callable[[AblationPoint], float], up: Callable[[AblationPoint], float], judged: bool = False
    ) -> tuple[Curve, ...]:
        return tuple(
            Curve(
                name,
                tuple(map(along, row)),
                tuple(map(up, row)),
                tuple(100 * one.interval[0] for one in row) if judged else (),
                tuple(100 * one.interval[1] for one in row) if judged else (),
                tuple(f"δ = {one.threshold:g}" for one in row),
            )
            for name, row in points.items()
        )

    def ratio(point: AblationPoint) -> float:
        return 100 * point.ops_ratio

    panels = [
        Lines(
            "Saving and cost",
            saved,
            Axis("Log-mel distance to the baseline", "natural-log units"),
            curves(ratio, lambda point: point.distance),
        ),
        Lines(
            "Saving by threshold",
            Axis("Threshold δ", unit),
            saved,
            curves(lambda point: point.threshold, ratio),
        ),
    ]
    if floor is not None:
        judged = curves(ratio, lambda point: 100 * (point.word_error_rate or 0.0), judged=True)
        ends = [x for curve in judged for x in curve.x]
        span = (min(ends), max(*ends, 100.0))
        reference = Curve("baseline", span, (100 * floor,) * 2, reference=True)
        panels.append(Lines("Intelligibility", saved, Axis("Word error rate", "%"), (*judged, reference)))
    return tuple(panels)


def _caption(
    points: Mapping[str, Sequence[AblationPoint]], judged: bool, calibrations: Sequence[Calibrations], sentences: int
) -> str:
    largest = max(one.threshold for one in points[FULL.title])
    parts = [
        f"{name} needs {percent(row[-1].ops_ratio)} of the operations at a distance of {row[-1].distance:.3f}"
        for name, row in points.items()
    ]
    words = f"At δ = {largest:g}: {'; '.join(parts)}. "
    words += " ".join(filter(None, (_against_full(name, row, points[FULL.title]) for name, row in points.items())))
    heard = "." if judged else "; word error rates need pip install 'paretone[judge]'."
    exact = all(one.exact == len(one.tables) for one in calibrations)
    tables = "every table calibrated at its threshold" if exact else "tables predicted from one calibration a variant"
    return f"{words} Means over {sentences} sentences that were not calibrated on, {tables}{heard}"


def _against_full(name: str, row: Sequence[AblationPoint], full: Sequence[AblationPoint]) -> str:
    """Whether a variant costs more at what the full method saves, where their savings overlap."""
    if name == FULL.title:
        return ""
    excess = [
        one.distance / between
        for one in row
        if (between := _interpolated(one.ops_ratio, full)) is not None and between > 0
    ]
    if not excess:
        return ""
    ratio = fmean(excess)
    if abs(ratio - 1) < 0.02:
        return f"At equal operations {name} is as far from the baseline as the full method."
    more = "farther from" if ratio > 1 else "closer to"
    return f"At equal operations {name} is {percent(abs(ratio - 1))} {more} the baseline than the full method."


def _interpolated(ops_ratio: float, points: Sequence[AblationPoint]) -> float | None:
    """The distance at ``ops_ratio`` on the straight lines between ``points``; ``None`` beyond their ends."""
    ordered = sorted(points, key=lambda point: point.ops_ratio)
    for left, right in pairwise(ordered):
        if left.ops_ratio <= ops_ratio <= right.ops_ratio and left.ops_ratio < right.ops_ratio:
            share = (ops_ratio - left.ops_ratio) / (right.ops_ratio - left.ops_ratio)
            return left.distance + share * (right.distance - left.distance)
    return None


VIEW = View(
    name="ablation",
    title="Ablation",
    question="What do temporal skipping, branch skipping and pre-calibration each contribute?",
    source="DiTReducio (arXiv 2509.09748), figure 6",
    families=("flow",),
    knobs=knobs,
    compute=compute,
)
