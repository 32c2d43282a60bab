"""How much faster our DiTReducio calibration is than the algorithm as published, for the identical table.

The published algorithm (and the official code) runs the whole backbone for every trial, and again to take the step.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.bench import bundled
from engine.bench.report import Report
from engine.errors import PlainError
from engine.measure.machine import describe
from engine.measure.timing import interval, paired_ratio
from engine.models.silent_observer import SilentObserver
from engine.sampling.actions import SkipAction
from engine.sampling.attention_similarity import diagonal_similarity
from engine.sampling.calibration_target import CalibrationTarget
from engine.sampling.skipping import LayerMemory, LayerPlan, ModulePlan
from engine.setting.knobs import Values, defaults
from engine.techniques.ditreducio import TECHNIQUE
from engine.techniques.ditreducio.calibration import calibrate
from engine.techniques.ditreducio.metrics import ERRORS

NAME = "calibration"
DEFINITION = (
    "Time of the published calibration algorithm over time of ours, median of paired, interleaved rounds on the same "
    "weights and sentence; both give the identical strategy table."
)

Rows = tuple[tuple[SkipAction, ...], ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    bundled.add_arguments(parser, steps=8, rounds=5)
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.1,
        help="threshold of the calibration (default: %(default)s)",
    )
    parser.add_argument(
        "--metric",
        choices=tuple(ERRORS),
        default="mae",
        help="error metric (default: %(default)s)",
    )


@torch.inference_mode()
def run(arguments: argparse.Namespace) -> Report:
    """Calibrate both ways, round by round. Raises :class:`PlainError` when the two tables are not identical."""
    model = bundled.loaded(arguments)
    target, _ = model.calibration_target(arguments.text, bundled.speaker(arguments), bundled.setting(arguments))
    knobs = defaults(TECHNIQUE.knobs).replace(threshold=arguments.threshold, metric=arguments.metric)
    tables: dict[str, Rows] = {}

    def published() -> None:
        tables["published"] = published_calibration(target, knobs)

    def ours() -> None:
        tables["ours"] = calibrate([target], knobs, SilentObserver()).table.actions

    ours()
    bundled.say(f"{arguments.rounds} rounds of each …")
    device = target.noise.device.type
    comparison = paired_ratio(
        {"published": published, "ours": ours},
        arguments.rounds,
        warm_up=0,
        device=device,
        on_round=lambda done: bundled.say(f"round {done} of {arguments.rounds}"),
    )
    if tables["published"] != tables["ours"]:
        raise PlainError("The two calibrations gave different tables: there is an error in one of them; report it.")
    ratio = comparison.speed_up["ours"]
    actions = [action for row in tables["ours"] for action in row]
    common = {action.name: actions.count(action) for action in SkipAction}
    rows = [
        {
            "calibration": name,
            f"{comparison.clock} (median)": interval(comparison.seconds[name]).median,
            "speed-up": 1.0 if name == comparison.baseline else ratio.median,
            **common,
        }
        for name in ("published", "ours")
    ]
    rows.append({"calibration": "published, again (A/A)", "speed-up": comparison.same.median})
    return Report(
        NAME,
        ratio.median,
        (ratio.low, ratio.high),
        DEFINITION,
        tuple(rows),
        describe().to_json(),
    )


def published_calibration(target: CalibrationTarget, knobs: Values) -> Rows:
    """Algorithm 1 with its check and pre-calibration, as the official code runs them: every trial is a whole
    evaluation."""
    backbone = target.backbone
    layers, steps = backbone.layers, len(target.times) - 1
    branch_skip, threshold = str(knobs["branch_skip"]), float(knobs["threshold"])
    error = ERRORS[str(knobs["metric"])]

    def evaluate(
        state: Tensor,
        step: int,
        actions: Sequence[SkipAction],
        memory: list[LayerMemory],
        keep: bool,
    ) -> Tensor:
        plans = [layer_plan(action, branch_skip, keep) for action in actions]
        return backbone.velocity(state, step, target.run, plans, memory)

    def compared(output: Tensor) -> Tensor:
        return target.guide(output) if knobs["compare"] == "guided" else output

    def after(state: Tensor, step: int, output: Tensor) -> Tensor:
        return target.follow(state, target.guide(output), step)

    similarities = np.full((layers, steps), np.nan)
    state = target.noise
    for step in range(steps):

        def probe(layer: int, name: str, value: Tensor, step: int = step) -> None:
            if name == "attention_input":
                inputs = backbone.attention_map_inputs(layer, value[: len(target.noise)])
                similarities[layer, step] = diagonal_similarity(*inputs)

        state = after(state, step, backbone.velocity(state, step, target.run, probe=probe))
    marked = similarities >= np.percentile(similarities, 100 - float(knobs["marked"]))

    both = (SkipAction.TS, SkipAction.BS) if target.branches > 1 else (SkipAction.TS,)
    table = [[SkipAction.NONE] * steps for _ in range(layers)]
    for first_pass in (True, False):
        memory = [LayerMemory() for _ in range(layers)]
        state = target.noise
        for step in range(steps):
            actions = [table[layer][step] for layer in range(layers)]
            output = compared(evaluate(state, step, actions, memory, keep=False))
            for layer in range(layers) if step else ():
                if actions[layer] is not SkipAction.NONE or (first_pass and not marked[layer, step]):
                    continue
                for action in both[:1] if first_pass else both:
                    tried = [*actions[:layer], action, *actions[layer + 1 :]]
                    changed = compared(evaluate(state, step, tried, memory, keep=False))
                    if error(output, changed) < (layer + 1) / layers * threshold:
                        actions = tried
                        break
            for layer, action in enumerate(actions):
                table[layer][step] = action
            state = after(state, step, evaluate(state, step, actions, memory, keep=True))
    return tuple(map(tuple, table))


def layer_plan(action: SkipAction, branch_skip: str, keep: bool) -> LayerPlan:
    """The duty of a layer that does ``action``; with ``keep``, whatever any later step may need of it is kept."""

    def plan(action: SkipAction) -> ModulePlan:
        return ModulePlan(action, keep and action is not SkipAction.TS, keep and action is SkipAction.NONE)

    spares_feed_forward = action is not SkipAction.BS or branch_skip == "both"
    return LayerPlan(plan(action), plan(action if spares_feed_forward else SkipAction.NONE))
