"""Latency of attention and feed-forward over the threshold: figure 5 of the DiTReducio paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from paretone.errors import SettingError
from paretone.measure.processor_time import clock_name
from paretone.measure.timing import interval, running_order
from paretone.setting.knobs import Effect, Knob, Number
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio.views.thresholds import (
    Calibrations,
    calibrate_all,
    calibrate_on_task,
    calibration_units,
    calibrations_needed,
    record_at_hand,
    threshold_knobs,
)
from paretone.views.figure import Axis, Bars, BarSeries
from paretone.views.view import Findings, Stages, Task, View
from paretone.wording import percent

BASELINE = "baseline"
Latencies = Mapping[str, Mapping[str, Sequence[float]]]
"""Seconds of every round, by variant and module."""


def knobs(layers: int) -> tuple[Knob, ...]:
    """Thresholds, and how often everything is timed."""
    return (
        *threshold_knobs(),
        Number(
            "rounds",
            "Rounds",
            "Number of rounds; each times all tables and the baseline.",
            default=7,
            minimum=3,
            maximum=51,
            effect=Effect.NEXT_VIEW,
            whole=True,
        ),
    )


def compute(task: Task) -> Findings:
    """Calibrate, then time the modules under all tables and none of them within the same rounds."""
    import torch

    from paretone.models.networks.diffusion import DiffusionTransformer
    from paretone.techniques.ditreducio.views.module_clock import ModuleClock
    from paretone.techniques.ditreducio.views.outputs import MODULES, run_through, target_of

    layers, steps = task.model.info.layers, compatibility_of(task.flow.info, task.setting).steps
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
                # With an observer, for every table and for none: otherwise layers may run block by block, in which
                # a module is not one call.
                run_through(target, work, ignore_output, table=variants[name])
                for module, seconds in clock.read().items():
                    if number >= 0:
                        latencies[name][module].append(seconds)
    return _found(latencies, found, clock_name(target.noise.device.type), MODULES)


def ignore_output(step: int, layer: int, module: str, output: object) -> None:
    """Observe without effect."""


def _found(latencies: Latencies, found: Calibrations, clock: str, modules: Mapping[str, str]) -> Findings:
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
    """Latency of a module under a table over that under none, paired round by round."""
    pairs = zip(latencies[name][module], latencies[BASELINE][module], strict=True)
    return median(one / plain for one, plain in pairs)


VIEW = View(
    name="module-latencies",
    title="Module latencies",
    question="How much time do attention and feed-forward save as the threshold rises?",
    source="DiTReducio (arXiv 2509.09748), figure 5",
    families=("flow",),
    knobs=knobs,
    compute=compute,
)
