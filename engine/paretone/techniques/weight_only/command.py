"""``paretone measure-weights``: gain and accuracy of packed weights on this device."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from paretone.bench.report import table
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.technique_args import with_weights
from paretone.commands.terminal import JOB, Session
from paretone.session.commands import Prepare
from paretone.techniques import weight_only
from paretone.techniques.weight_only import MeasureWeights

NAME = "measure-weights"
SUMMARY = "Measure weights of 8 and 4 bits on this device: the time of one-token passes, and exactness."


def declare(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser, arguments.DEFAULT_LANGUAGE_MODEL)
    arguments.add_techniques(parser.add_argument_group("techniques that change the weights, such as a student"))
    arguments.add_sampler(parser)
    parser.add_argument(
        "--group",
        type=int,
        action="append",
        choices=[int(one) for one in weight_only.GROUPS],
        help="inputs that share a scale with 4 bits; repeat for more (default: 32)",
    )


def run(options: argparse.Namespace, session: Session) -> Result:
    model_id = arguments.model(options)
    setting = arguments.setting(options, model_id)
    model = arguments.load(options, session, model_id, options.variant)
    request = MeasureWeights(with_weights(setting, model.info), tuple(options.group or (32,)))
    found = session.carry_out(Prepare(JOB, weight_only.NAME, request)).result
    rows = [
        {
            "weights": f"{one.bits}, groups of {one.group}" if one.group else one.bits,
            "passes (95 % interval)": one.compared,
            "error of scores": one.error,
            "divergence (nats)": one.divergence,
            "used": "yes" if one.gains else "no: gains nothing here",
        }
        for one in found.measured
    ]
    lines = [*table(rows), "", f"One-token passes on {model.info.device}, {found.measured[0].machine}."]
    lines.append(f"Wrote {found.path}.")
    return Result({"path": found.path, "measured": [asdict(one) for one in found.measured]}, "\n".join(lines))
