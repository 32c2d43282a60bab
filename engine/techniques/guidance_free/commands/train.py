"""``paretone train cfg-free``: fine-tune a model so that it needs no guidance, on recordings and their texts."""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

from engine.commands import arguments
from engine.commands.result import Result
from engine.commands.session import JOB, Session
from engine.session.commands import Prepare
from engine.techniques import guidance_free
from engine.techniques.guidance_free.requests import METHODS, GuidanceFreeRequest

NAME = "train cfg-free"
SUMMARY = "Fine-tune a model on recordings so that one branch replaces the two of guidance."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    arguments.add_model(parser)
    parser.add_argument(
        "--manifest",
        type=Path,
        metavar="FILE",
        help="CSV with audio,text and optionally phones,voice,set (default, for f5-mini only: synthesised speech)",
    )
    arguments.add_run(parser)
    group = parser.add_argument_group("CFG-free")
    group.add_argument(
        "--weight",
        "--w",
        type=_number,
        required=True,
        metavar="w",
        help="above 0, below 1; replaces guidance of strength w/(1-w): 0.5 is 1, 2/3 is 2",
    )
    group.add_argument(
        "--method",
        choices=METHODS,
        default=METHODS[0],
        help="model-guidance is the papers' method, distillation copies the guided model (default: %(default)s)",
    )
    group.add_argument(
        "--latest",
        type=float,
        default=1.0,
        metavar="t",
        help="no guidance in targets after this flow time (default: 1)",
    )
    group.add_argument(
        "--weight-warm-up",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of the budget during which w rises (default: 0.1)",
    )
    group.add_argument(
        "--average-difference",
        action="store_true",
        help="take v_c - v_u from the averaged weights; a third pass per step",
    )
    group = arguments.add_budget(parser)
    group.add_argument(
        "--rate", type=float, help="learning rate (default: 3e-4 below 20 million parameters, else 1e-5)"
    )
    group.add_argument(
        "--matrix-rate",
        type=float,
        metavar="RATE",
        help="learning rate of Muon for the matrices of the blocks (default: AdamW for everything); 0.005 suits small "
        "models",
    )
    group.add_argument(
        "--frames", type=arguments.positive, default=1_800, help="mel frames per step (default: %(default)s)"
    )
    group.add_argument("--seed", type=int, default=1, help="seed of order, spans, times and noise (default: 1)")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Train, and say where the result lies."""
    request = GuidanceFreeRequest(
        model=options.model or arguments.DEFAULT_MODEL,
        manifest=arguments.path_text(options.manifest),
        weight=options.weight,
        method=options.method,
        learning_rate=options.rate,
        matrix_rate=options.matrix_rate,
        frames=options.frames,
        weight_warm_up=options.weight_warm_up,
        latest=options.latest,
        average_difference=options.average_difference,
        seed=options.seed,
        folder=options.folder,
        variant=options.variant,
        **arguments.training_request(options),
    )
    command = Prepare(JOB, guidance_free.NAME, request)
    tuned = session.carry_out(command, arguments.showing_training(session.terminal)).result
    if not tuned.is_first:  # One process of many speaks for all.
        options.json = False
        return Result({})
    strength = tuned.figures["equivalent_guidance"]
    data = {
        "checkpoint": tuned.checkpoint,
        "weight": options.weight,
        "equivalent_guidance": strength,
        "method": options.method,
        "steps": tuned.steps,
        "seconds": tuned.seconds,
        "validation": dict(tuned.validation),
    }
    text = (
        f"Wrote {tuned.checkpoint}: w = {options.weight:.4g}, one branch in place of guidance {strength:.4g}, "
        f"{tuned.steps} steps by {options.method}.\n"
        f"On held-out speech, one branch has learned {tuned.validation['learnt']:.0%} of the guidance."
    )
    return Result(data, text)


def _number(text: str) -> float:
    """A number, or a fraction such as ``2/3``."""
    try:
        return float(Fraction(text)) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be a number, or a fraction such as 2/3, not {text!r}") from None
