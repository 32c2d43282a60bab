"""Measured saving of DiTReducio's tables, as a share of the skipped work, and the loss of fidelity.

At seven thresholds: calibrate, then time the backbone under the table against the backbone without one.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
import torch
from torch import Tensor

from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.commands.arguments import finite
from paretone.errors import PlainError
from paretone.measure.timing import interval
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.flow import integrate
from paretone.sampling.skipping import LayerMemory
from paretone.setting.knobs import defaults
from paretone.speaking import scripted
from paretone.techniques.ditreducio import TECHNIQUE
from paretone.techniques.ditreducio.calibration import calibrate
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.wording import Share

NAME = "skipping"
LEVELS = (0.02, 0.05, 0.10, 0.15, 0.20, 0.30, 0.40)
"""Thresholds in units of the mean absolute error; on the bundled model they range from hardly any skip to most."""
COUNTED_FROM = 0.10
"""Tables that save less than this share of the operations are measured, but do not count in the headline."""
DEFINITION = (
    "Realised share: (1 - time ratio of the backbone) / (1 - ops ratio), times paired and interleaved with the "
    "backbone that skips nothing; median over the thresholds that skip at least 10 % of the operations."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    bundled.add_arguments(parser, steps=16, rounds=9)
    parser.add_argument(
        "--thresholds", type=finite, nargs="+", default=LEVELS, help="thresholds δ to calibrate at (default: seven)"
    )


@torch.inference_mode()
def run(arguments: argparse.Namespace) -> Report:
    model = bundled.loaded_flow(arguments)
    script = scripted(model, arguments.text, bundled.speaker(arguments), bundled.setting(arguments))
    target, operations = model.calibration_target(script), model.operations(script)
    tables: dict[float, StrategyTable] = {}
    for threshold in arguments.thresholds:
        bundled.say(f"calibrating at threshold {threshold:g} …")
        knobs = defaults(TECHNIQUE.knobs).replace(threshold=threshold)
        tables[threshold] = calibrate([target], knobs, Observer()).table
    ratios = {threshold: table.ops_ratio(operations) for threshold, table in tables.items()}
    counted = [threshold for threshold in tables if 1 - ratios[threshold] >= COUNTED_FROM]
    if not counted:
        raise PlainError("No threshold skips 10 % of the operations; give larger values with --thresholds.")

    variants = {"baseline": partial(sample, target, None)}
    variants |= {f"{threshold:g}": partial(sample, target, table) for threshold, table in tables.items()}
    comparison = bundled.timed(variants, target.noise.device.type, arguments)
    shares = {
        threshold: (1 - 1 / np.array(comparison.ratios(f"{threshold:g}"))) / (1 - ratios[threshold])
        for threshold in tables
        if ratios[threshold] < 1
    }
    baseline = sample(target, None)
    rows: list[dict[str, object]] = []
    for threshold, table in tables.items():
        # Of the new speech alone: the prompt's frames are cut off before playback.
        differences = (sample(target, table) - baseline)[:, target.prompt_frames :]
        rows.append(
            {
                "threshold": threshold,
                "computed": table.count(SkipAction.NONE),
                "TS": table.count(SkipAction.TS),
                "BS": table.count(SkipAction.BS),
                "ops ratio": ratios[threshold],
                "predicted speed-up": 1 / ratios[threshold],
                **comparison.speed_up[f"{threshold:g}"].columns("measured speed-up"),
                "realised share": Share(np.median(shares[threshold])) if threshold in shares else None,
                "log-mel distance": differences.abs().mean().item(),
            }
        )
    rows.append({"threshold": "A/A", "measured speed-up": comparison.same.median})
    headline = interval(np.median([shares[threshold] for threshold in counted], axis=0).tolist())
    return Report.of(NAME, headline, DEFINITION, rows)


def sample(target: CalibrationTarget, table: StrategyTable | None) -> Tensor:
    """Run backbone and sampler for one sentence and return the last state, prompt frames included."""
    plan, memory = None, None
    if table is not None:
        plan, memory = skip_plan(table), [LayerMemory() for _ in range(table.layers)]

    def velocity(state: Tensor, step: int) -> Tensor:
        plans = None if plan is None else plan.at(step)
        return target.guide(target.backbone.evaluate(state, step, target.run, plans, memory))

    return integrate(velocity, target.noise, target.times, follow=target.follow)
