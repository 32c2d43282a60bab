"""``paretone train spade``: a student with fewer layers."""

from __future__ import annotations

import argparse

from paretone.commands import arguments, companion_args
from paretone.commands.result import Result
from paretone.commands.session import JOB, Session
from paretone.session.commands import Prepare
from paretone.techniques import spade
from paretone.techniques.spade import parsed_layers
from paretone.techniques.spade.requests import StudentRequest

NAME = "train spade"
SUMMARY = "Train a student with fewer layers, which learns from the whole speech language model (SPADE)."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    group = parser.add_argument_group("student")
    kept = group.add_mutually_exclusive_group()
    kept.add_argument(
        "--depth", type=arguments.positive, help="layers to keep, by importance (default: half of the model's)"
    )
    kept.add_argument("--layers", type=_layers, default=(), metavar="0,1,5", help="which layers to keep, from 0")
    group.add_argument(
        "--stages",
        type=arguments.above_zero,
        nargs="*",
        default=(),
        metavar="MINUTES",
        help="also keep the student after this many minutes of the budget",
    )
    group.add_argument(
        "--published-latents",
        action="store_true",
        help="errors of layer outputs as published, not relative to the teacher's size",
    )
    companion_args.declare(parser)


def run(options: argparse.Namespace, session: Session) -> Result:
    """Train, and say where the result lies."""
    request = StudentRequest(
        **companion_args.request(options),
        depth=options.depth,
        retained=options.layers,
        stages=tuple(options.stages),
        relative_latents=not options.published_latents,
    )
    done = session.carry_out(Prepare(JOB, spade.NAME, request), arguments.showing_training(session.terminal))
    return companion_args.result(done.result)


def _layers(text: str) -> tuple[int, ...]:
    try:
        layers = parsed_layers(text)
    except ValueError:
        layers = ()
    if not layers:
        raise argparse.ArgumentTypeError(f"must be a list of layers such as 0,1,5, not {text!r}")
    return layers
