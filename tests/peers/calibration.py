"""Speed of our DiTReducio calibration against the algorithm as published, for the identical table.

The published algorithm (and the official code) runs the whole backbone for every trial, and again to take the step.
"""

import argparse

import torch

from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.commands.arguments import finite
from paretone.errors import PlainError
from paretone.measure.timing import interval
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import defaults
from paretone.speaking import scripted
from paretone.techniques.ditreducio import TECHNIQUE
from paretone.techniques.ditreducio.calibration import calibrate
from paretone.techniques.ditreducio.trajectory import ERRORS
from tests.peers.ditreducio_algorithm import Rows, published_calibration

NAME = "calibration"
DEFINITION = (
    "Time of the published calibration algorithm over time of ours, median of paired, interleaved rounds on the same "
    "weights and sentence; both give the identical strategy table."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    bundled.add_arguments(parser, steps=8, rounds=5)
    shown = "(default: %(default)s)"
    parser.add_argument("--threshold", type=finite, default=0.1, help=f"threshold of the calibration {shown}")
    parser.add_argument("--metric", choices=tuple(ERRORS), default="mae", help=f"error metric {shown}")


@torch.inference_mode()
def run(arguments: argparse.Namespace) -> Report:
    """Calibrate both ways, round by round. Raises :class:`PlainError` if the tables differ."""
    model = bundled.loaded_flow(arguments)
    setting = bundled.setting(arguments)
    script = scripted(model, arguments.text, bundled.speaker(arguments), setting, prepared=False)
    target = model.calibration_target(script)
    knobs = defaults(TECHNIQUE.knobs).replace(threshold=arguments.threshold, metric=arguments.metric)
    tables: dict[str, Rows] = {}

    def published() -> None:
        tables["published"] = published_calibration(target, knobs)

    def ours() -> None:
        tables["ours"] = calibrate([target], knobs, Observer()).table.actions

    ours()
    ways = {"published": published, "ours": ours}
    comparison = bundled.timed(ways, target.noise.device.type, arguments, warm_up=0)
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
    return Report.of(NAME, ratio, DEFINITION, rows)
