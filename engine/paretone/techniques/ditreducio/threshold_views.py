"""Views over thresholds: tables, latencies, ablation (DiTReducio's figures 9, 5, 6), both objectives.

Torch-free at import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np

from paretone.errors import SettingError
from paretone.measure.processor_time import clock_name
from paretone.measure.timing import interval, running_order
from paretone.sampling.actions import SkipAction
from paretone.sampling.guidance import TwoWeightGuidance
from paretone.setting.knobs import Choice, Effect, Knob, amount
from paretone.setting.setting import UsedTechnique
from paretone.speaking import scripted
from paretone.techniques import compatibility_of, ditreducio
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.published import rule_of
from paretone.views.figure import Axis, Bars, BarSeries, Curve, HeatMap, Lines
from paretone.views.view import PUBLISHED as BY_PAPER
from paretone.views.view import RULE, Findings, ProgressStage, Stages, Task, View, count_knob, sentences_knob
from paretone.wording import percent

CALIBRATED, PREDICTED = "calibrated", "predicted"
PUBLISHED_LARGEST, PUBLISHED_LARGEST_MEGATTS3 = 0.3, 1.2


def threshold_knobs(count: int = 6, tables: str = PREDICTED) -> tuple[Knob, ...]:
    """Knobs of the thresholds; ``count`` and ``tables`` are their defaults. The paper has six up to 0.3 for F5-TTS, and
    up to 1.2 for MegaTTS 3, in the unit of its relative error."""
    return (
        amount(
            "largest",
            "Largest threshold",
            f"Thresholds are spaced evenly up to this one; 0: as published, {PUBLISHED_LARGEST:g}, and for MegaTTS 3 "
            f"{PUBLISHED_LARGEST_MEGATTS3:g}. Published thresholds belong to the relative error.",
            default=0.0,
            between=(0.0, 2.0),
            symbol="δ",
            effect=Effect.NEXT_VIEW,
            step=0.05,
            lowest="as published",
        ),
        count_knob("count", "Thresholds", "Number of thresholds.", count, 12),
        Choice(
            "tables",
            "Tables",
            "Calibrate at every threshold, or once at the smallest and predict the others: faster, less exact.",
            default=tables,
            effect=Effect.NEXT_VIEW,
            values=(CALIBRATED, PREDICTED),
            titles=("Calibrated", "Predicted"),
        ),
        RULE,
    )


def ruled(compute: Callable[[Task], Findings]) -> Callable[[Task], Findings]:
    """``compute`` with DiTReducio's knobs by the view's rule, which the caption then names."""

    def computed(task: Task) -> Findings:
        knobs = rule_of(ditreducio.TECHNIQUE, task.setting, task.model.info.knobs, task.knobs["rule"] == BY_PAPER)
        found = compute(replace(task, setting=task.setting.with_technique(UsedTechnique(ditreducio.NAME, knobs))))
        caption = f"{found.caption} Calibrated {'as published' if task.knobs['rule'] == BY_PAPER else 'as chosen'}."
        if knobs["metric"] != "relative":
            unit = ditreducio.UNITS["mae"]
            caption += f" δ is in {unit}; the published δ belong to the official code's relative error."
        return replace(found, caption=caption)

    return computed


def thresholds(task: Task) -> tuple[float, ...]:
    count, largest = int(task.knobs["count"]), float(task.knobs["largest"])
    if not largest:
        two_weights = isinstance(task.model.info.of_flow.guidance, TwoWeightGuidance)
        largest = PUBLISHED_LARGEST_MEGATTS3 if two_weights else PUBLISHED_LARGEST
    return tuple(round(largest * (index + 1) / count, 6) for index in range(count))


@dataclass(frozen=True)
class Calibrations:
    """Tables by threshold, and their exactness."""

    tables: dict[float, StrategyTable]
    exact: int
    """Number of tables that equal a calibration at their threshold."""

    @property
    def words(self) -> str:
        """Sentence on the exactness of the tables."""
        if self.exact == len(self.tables):
            return "Every table is calibrated at its threshold."
        return f"{len(self.tables) - self.exact} of the {len(self.tables)} tables are predicted from one calibration."


def calibration_units(layers: int, steps: int) -> int:
    """Approximate number of layer evaluations of one calibration."""
    return 3 * steps * layers + (steps - 1) * layers * (layers + 1) // 2


def calibrations_needed(task: Task) -> int:
    """Number of calibrations that :func:`calibrate_all` runs."""
    if task.knobs["tables"] == CALIBRATED:
        return int(task.knobs["count"])
    return 0 if record_at_hand(task) is not None else 1


def record_at_hand(task: Task) -> CalibrationRecord | None:
    """The task's calibration, if it was made for this model, sampling and knobs, at any threshold."""
    from paretone.techniques.ditreducio.preparation import knobs_of

    record = next((one for one in task.records if isinstance(one, CalibrationRecord)), None)
    here = compatibility_of(task.flow.info, task.setting, of_flow=True)
    if record is None or record.table.compatibility.mismatch(here):
        return None
    wanted = knobs_of(task.setting).replace(objective=ditreducio.PUBLISHED)
    return record if ditreducio.calibrates_alike(record.knobs, wanted) else None


def calibrate_all(
    task: Task,
    work: Stages,
    units: int,
    calibrate: Callable[[float, ProgressStage], CalibrationRecord],
    title: str = "",
    record: CalibrationRecord | None = None,
) -> Calibrations:
    """Tables at all thresholds of the task's knobs. ``calibrate`` runs one calibration, of ``units``; ``record``
    replaces it if tables are predicted."""
    wanted = thresholds(task)

    def made(threshold: float) -> CalibrationRecord:
        return calibrate(threshold, work.part(units, f"{title}Calibrating at threshold {threshold:g}"))

    if task.knobs["tables"] == CALIBRATED:
        return Calibrations({one: made(one).table for one in wanted}, len(wanted))
    record = record or made(wanted[0])
    derived = {one: record.derive(one) for one in wanted}
    tables = {one: each.table for one, each in derived.items()}
    return Calibrations(tables, sum(each.exact for each in derived.values()))


def calibrate_on_task(
    task: Task, objective: str = ditreducio.PUBLISHED, varied: str = "threshold"
) -> Callable[[float, ProgressStage], CalibrationRecord]:
    """Calibration on the task's sentence under DiTReducio's knobs, except ``objective`` and the value of ``varied``."""
    from paretone.techniques.ditreducio.preparation import calibrate_model, knobs_of

    knobs = knobs_of(task.setting).replace(objective=objective)

    def calibrate(value: float, observer: ProgressStage) -> CalibrationRecord:
        used = UsedTechnique(ditreducio.TECHNIQUE.name, knobs.replace(**{varied: value}))
        return calibrate_model(task.model, [task.utterance], task.setting.with_technique(used), observer)

    return calibrate


def with_table(task: Task, threshold: float, table: StrategyTable) -> Task:
    from paretone.techniques.ditreducio.preparation import knobs_of

    knobs = knobs_of(task.setting).replace(threshold=threshold)
    used = UsedTechnique(ditreducio.TECHNIQUE.name, knobs, table.fingerprint)
    return replace(task, setting=task.setting.with_technique(used))


NAMES = {SkipAction.NONE: "compute", SkipAction.TS: "temporal skip", SkipAction.BS: "branch skip"}


def compute_tables(task: Task) -> Findings:
    steps = compatibility_of(task.flow.info, task.setting, of_flow=True).steps
    units = calibration_units(task.model.info.of_flow.layers, steps)
    work = Stages(task.observer, units * calibrations_needed(task))
    found = calibrate_all(task, work, units, calibrate_on_task(task), record=record_at_hand(task))
    operations = task.flow.operations(
        scripted(task.flow, task.utterance.text, task.utterance.voice, task.setting, prepared=False)
    )
    ratios = {threshold: table.ops_ratio(operations) for threshold, table in found.tables.items()}
    panels = tuple(
        HeatMap.by_layer(
            f"δ = {threshold:g}, ops {percent(ratios[threshold])}", "Action", table.actions, tuple(NAMES.values())
        )
        for threshold, table in found.tables.items()
    )
    return Findings(panels, _tables_caption(found, ratios), across=3)


def _tables_caption(found: Calibrations, ratios: dict[float, float]) -> str:
    first, last = min(found.tables), max(found.tables)
    words = (
        f"From δ = {first:g} to {last:g} the skipped cells rise from {percent(found.tables[first].skipped_share)} to "
        f"{percent(found.tables[last].skipped_share)}, and the operations fall from {percent(ratios[first])} to "
        f"{percent(ratios[last])} of the baseline's. "
    )
    halves: tuple[list[SkipAction], list[SkipAction]] = [], []
    for table in found.tables.values():
        middle = 1 + (table.steps - 1) // 2
        for row in table.actions:
            halves[0].extend(row[1:middle])
            halves[1].extend(row[middle:])
    early, late = (half.count(SkipAction.TS) / max(1, len(half)) for half in halves)
    if early != late:
        more = "later" if late > early else "earlier"
        words += (
            f"{more.capitalize()} steps repeat themselves more: {percent(early)} temporal skips in the first half of "
            f"the steps, {percent(late)} in the second{' (the paper finds the same)' if late > early else ''}. "
        )
    return words + found.words


TABLES = View(
    name="tables",
    title="Strategy tables",
    question="Which modules are skipped as the threshold rises?",
    source="DiTReducio (arXiv 2509.09748), figure 9",
    families=("flow",),
    knobs=lambda layers: threshold_knobs(),
    compute=ruled(compute_tables),
)


BASELINE = "baseline"
Latencies = Mapping[str, Mapping[str, Sequence[float]]]
"""Seconds of every round, by variant and module."""


def compute_latencies(task: Task) -> Findings:
    """Calibrate, then time the modules with and without all tables in the same rounds."""
    import torch

    from paretone.models.networks.diffusion import DiffusionTransformer
    from paretone.techniques.ditreducio.probing import MODULES, ModuleClock, run_through, target_of

    layers, steps = task.model.info.of_flow.layers, compatibility_of(task.flow.info, task.setting, of_flow=True).steps
    rounds, units = int(task.knobs["rounds"]), calibration_units(layers, steps)
    runs = (int(task.knobs["count"]) + 1) * (rounds + 1)
    work = Stages(task.observer, units * calibrations_needed(task) + runs * steps * layers)
    found = calibrate_all(task, work, units, calibrate_on_task(task), record=record_at_hand(task))
    target = target_of(task)
    if not isinstance(target.backbone, DiffusionTransformer):
        raise SettingError(f"The modules of {task.model.info.title} cannot be timed one by one.")
    variants = {BASELINE: None} | {f"δ = {threshold:g}": table for threshold, table in found.tables.items()}
    latencies: dict[str, dict[str, list[float]]] = {name: {module: [] for module in MODULES} for name in variants}
    with torch.inference_mode(), ModuleClock(target.backbone, target.noise.device) as clock:
        # The first round warms everything up.
        for number in range(-1, rounds):
            work.part(0, "Warming up" if number < 0 else f"Timing, round {number + 1} of {rounds}")
            for name in running_order(tuple(variants), max(number, 0)):
                clock.reset()
                # Always with an observer: otherwise layers may run block by block, in which a module is not one call.
                run_through(target, work, lambda *_: None, table=variants[name])
                for module, seconds in clock.read().items():
                    if number >= 0:
                        latencies[name][module].append(seconds)
    return _latencies_found(latencies, found, clock_name(target.noise.device.type), MODULES)


def _latencies_found(latencies: Latencies, found: Calibrations, clock: str, modules: Mapping[str, str]) -> Findings:
    def series(module: str) -> BarSeries:
        intervals = [interval([1000 * one for one in rounds[module]]) for rounds in latencies.values()]
        shares = [share(latencies, name, module) for name in latencies]
        return BarSeries(
            modules[module],
            tuple(one.median for one in intervals),
            tuple(one.low for one in intervals),
            tuple(one.high for one in intervals),
            tuple(f"{percent(one)} of the baseline, paired" for one in shares),
        )

    bars = Bars(
        "Latency of the modules, one sentence",
        Axis("Strategy table"),
        Axis("Latency", "ms"),
        tuple(latencies),
        tuple(map(series, modules)),
    )
    last = list(latencies)[-1]
    reductions = " and ".join(
        f"{title.lower()} {percent(1 - share(latencies, last, module), 1)}" for module, title in modules.items()
    )
    rounds = len(latencies[BASELINE][next(iter(modules))])
    caption = (
        f"At {last} latency is lower by: {reductions} (median of the ratios within {rounds} rounds that timed all "
        f"tables). Bars are medians of {clock}, all layers and steps of one sentence, with 95 % bootstrap intervals. "
        f"{found.words} The paper reports 52.8 % and 59.8 % for F5-TTS at its largest threshold, on a GPU."
    )
    return Findings((bars,), caption, across=1)


def share(latencies: Latencies, name: str, module: str) -> float:
    """Latency of a module under a table over that without one, paired round by round."""
    pairs = zip(latencies[name][module], latencies[BASELINE][module], strict=True)
    return median(one / plain for one, plain in pairs)


MODULE_LATENCIES = View(
    name="module-latencies",
    title="Module latencies",
    question="How much time do attention and feed-forward save as the threshold rises?",
    source="DiTReducio (arXiv 2509.09748), figure 5",
    families=("flow",),
    knobs=lambda layers: (
        *threshold_knobs(),
        count_knob("rounds", "Rounds", "Number of rounds; each times all tables and the baseline.", 7, 51, least=3),
    ),
    compute=ruled(compute_latencies),
)


@dataclass(frozen=True)
class Variant:
    """DiTReducio with parts removed."""

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


@dataclass(frozen=True)
class Point:
    label: str
    ops_ratio: float
    distance: float
    threshold: float = 0.0
    heard: tuple[tuple[float, float, float], ...] = ()
    """What each judge measured, with its 95 % interval."""

    def operations(self) -> float:
        return 100 * self.ops_ratio


SAVED = Axis("Operations of the baseline", "%")


def _curves(
    points: Mapping[str, Sequence[Point]], along: Callable[[Point], float], up: Callable[[Point], float]
) -> tuple[Curve, ...]:
    return tuple(
        Curve(name, tuple(map(along, row)), tuple(map(up, row)), notes=tuple(one.label for one in row))
        for name, row in points.items()
    )


def compute_ablation(task: Task) -> Findings:
    """Calibrate every variant, speak all sentences under every table, and compare them with the baseline."""
    from paretone.techniques.ditreducio.preparation import knobs_of
    from paretone.views.quality import distance, judged_utterances, judges_of_papers, measured, speak_all

    model, setting = task.model, task.setting.without(ditreducio.TECHNIQUE.name)
    layers, steps = model.info.of_flow.layers, compatibility_of(task.flow.info, setting, of_flow=True).steps
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
    kinds = judges_of_papers()
    ears = [kind.ready([one.text for one in sentences]) for kind, _ in kinds]
    baseline = speak_all(model, sentences, setting, work, spoken_units, "Baseline")
    floors = [measured(ear, sentences, baseline)[0] for ear in ears]
    points: dict[str, list[Point]] = {}
    calibrations = []
    for variant in variants:
        record = record_at_hand(task) if variant is FULL else None
        title = variant.title.capitalize()
        found = calibrate_all(task, work, units, calibrate_variant(task, variant), f"{title}: ", record)
        calibrations.append(found)
        for threshold, table in found.tables.items():
            used = with_table(task, threshold, table).setting
            doing = f"{title} at threshold {threshold:g}"
            spoken = speak_all(model, sentences, used, work, spoken_units, doing, (table,))
            points.setdefault(variant.title, []).append(
                Point(
                    f"δ = {threshold:g}",
                    fmean(one.measurements.ops_ratio for one in spoken),
                    distance(baseline, spoken),
                    threshold,
                    tuple(measured(ear, sentences, spoken) for ear in ears),
                )
            )
    unit = ditreducio.UNITS[str(knobs_of(task.setting)["metric"])]
    by_threshold = _curves(points, lambda one: one.threshold, Point.operations)
    panels = [_saving_and_cost(points), Lines("Saving by threshold", Axis("Threshold δ", unit), SAVED, by_threshold)]
    panels += [_judged(points, at, floors[at], kind.title, axis) for at, (kind, axis) in enumerate(kinds)]
    judged = "words" in [kind.name for kind, _ in kinds]
    caption = _ablation_caption(points, judged, calibrations, len(sentences))
    return Findings(tuple(panels), caption, 2, sentences)


def calibrate_variant(task: Task, variant: Variant) -> Callable[[float, ProgressStage], CalibrationRecord]:
    """Calibration on the task's sentence, by threshold, with what ``variant`` leaves out."""
    import torch

    from paretone.techniques.ditreducio.calibration import calibrate
    from paretone.techniques.ditreducio.preparation import knobs_of, prepared, scripts_of

    ablation_knobs = knobs_of(task.setting)
    targets, _ = prepared(task.model, scripts_of(task.model, [task.utterance], task.setting))

    def calibrated(threshold: float, observer: ProgressStage) -> CalibrationRecord:
        with torch.inference_mode():
            return calibrate(
                targets,
                ablation_knobs.replace(threshold=threshold),
                observer,
                candidates=variant.candidates,
                pre_calibrates=variant.pre_calibrates,
            )

    return calibrated


def _judged(points: Mapping[str, Sequence[Point]], at: int, floor: float, title: str, axis: Axis) -> Lines:
    """What one judge measured over the operations, and of the baseline (``floor``)."""
    curves = [
        Curve.banded(
            name, map(Point.operations, row), (one.heard[at] for one in row), notes=tuple(one.label for one in row)
        )
        for name, row in points.items()
    ]
    ends = [x for curve in curves for x in curve.x]
    span = (min(ends), max(*ends, 100.0))
    return Lines(title, SAVED, axis, (*curves, Curve("baseline", span, (floor, floor), reference=True)))


def _ablation_caption(
    points: Mapping[str, Sequence[Point]], judged: bool, calibrations: Sequence[Calibrations], sentences: int
) -> str:
    full = points[FULL.title]
    largest = max(one.threshold for one in full)
    parts = [
        f"{name} needs {percent(row[-1].ops_ratio)} of the operations at a distance of {row[-1].distance:.3f}"
        for name, row in points.items()
    ]
    against = (_against_full(name, row, full) for name, row in points.items() if name != FULL.title)
    words = f"At δ = {largest:g}: {'; '.join(parts)}. {' '.join(filter(None, against))}"
    heard = "." if judged else "; word error rates need pip install 'paretone[judge]'."
    exact = all(one.exact == len(one.tables) for one in calibrations)
    tables = "every table calibrated at its threshold" if exact else "tables predicted from one calibration a variant"
    return f"{words} Means over {sentences} sentences that were not calibrated on, {tables}{heard}"


def _against_full(name: str, row: Sequence[Point], full: Sequence[Point]) -> str:
    """Compare the cost of a variant with the full method's at equal savings, where these overlap."""
    shares, distances = zip(*sorted((one.ops_ratio, one.distance) for one in full), strict=True)
    between = np.interp([one.ops_ratio for one in row], shares, distances, left=0.0, right=0.0)
    excess = [one.distance / distance for one, distance in zip(row, between, strict=True) if distance > 0]
    if not excess:
        return ""
    ratio = fmean(excess)
    if abs(ratio - 1) < 0.02:
        return f"At equal operations {name} is as far from the baseline as the full method."
    more = "farther from" if ratio > 1 else "closer to"
    return f"At equal operations {name} is {percent(abs(ratio - 1))} {more} the baseline than the full method."


ABLATION = View(
    name="ablation",
    title="Ablation",
    question="What do temporal skipping, branch skipping and pre-calibration each contribute?",
    source="DiTReducio (arXiv 2509.09748), figure 6",
    families=("flow",),
    knobs=lambda layers: (
        *threshold_knobs(count=4, tables=CALIBRATED),
        sentences_knob(3, "that every table speaks, to compare with the baseline and to judge"),
    ),
    compute=ruled(compute_ablation),
)


PUBLISHED, OURS = "published: error of the step", "ours: end of the trajectory"


def compute_objectives(task: Task) -> Findings:
    from paretone.techniques.ditreducio.end_calibration import end_units
    from paretone.views.quality import distance, judged_utterances, speak_all

    model, setting = task.model, task.setting.without(ditreducio.TECHNIQUE.name)
    layers, steps = model.info.of_flow.layers, compatibility_of(task.flow.info, setting, of_flow=True).steps
    sentences = judged_utterances(task.utterance, int(task.knobs["sentences"]))
    smallest, number = float(task.knobs["smallest"]), int(task.knobs["budgets"])
    budgets = [100 - (100 - smallest) * (at + 1) / number for at in range(number)]
    count, units, end = int(task.knobs["count"]), calibration_units(layers, steps), end_units(layers, steps)
    spoken_units = 1.3 * steps * layers
    runs = (count + len(budgets) + 1) * len(sentences)
    work = Stages(task.observer, calibrations_needed(task) * units + len(budgets) * end + runs * spoken_units)
    baseline = speak_all(model, sentences, setting, work, spoken_units, "Baseline")
    found = calibrate_all(task, work, units, calibrate_on_task(task), "Published: ", record_at_hand(task))
    tables = {PUBLISHED: {f"δ = {one:g}": table for one, table in found.tables.items()}, OURS: {}}
    ours = calibrate_on_task(task, ditreducio.END, "operations")
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
    last = points[OURS][-1]
    nearest = min(points[PUBLISHED], key=lambda one: abs(one.ops_ratio - last.ops_ratio))
    caption = (
        f"At {percent(last.ops_ratio)} of the operations a table calibrated for the end is {last.distance:.3f} from "
        f"the baseline; the published table nearest to it, at {percent(nearest.ops_ratio)}, is {nearest.distance:.3f}. "
        f"Means over {len(sentences)} sentences other than the selected one, on which ours is calibrated. {found.words}"
    )
    return Findings((_saving_and_cost(points),), caption, 1, sentences)


def _saving_and_cost(points: Mapping[str, Sequence[Point]]) -> Lines:
    cost = Axis("Log-mel distance to the baseline", "natural-log units")
    return Lines("Saving and cost", SAVED, cost, _curves(points, Point.operations, lambda one: one.distance))


OBJECTIVES = View(
    name="objectives",
    title="Published against ours",
    question="How far from the baseline does each way of choosing skips lead, at equal operations?",
    source="DiTReducio (arXiv 2509.09748), section 3.4; calibrating for the end of the trajectory is ours",
    families=("flow",),
    knobs=lambda layers: (
        *threshold_knobs(count=4, tables=PREDICTED),
        amount(
            "smallest",
            "Smallest budget",
            "Budgets are spaced evenly down to this share of the baseline's operations.",
            default=40.0,
            between=(15.0, 95.0),
            unit="%",
            step=5.0,
            effect=Effect.NEXT_VIEW,
        ),
        count_knob("budgets", "Budgets", "Number of budgets, each a separate calibration.", 3, 8),
        sentences_knob(3, "that every table speaks, to compare with the baseline"),
    ),
    compute=ruled(compute_objectives),
)
