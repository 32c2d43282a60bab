"""``paretone train cfg-free``: fine-tune a model so that it needs no guidance, on recordings and their texts."""

from __future__ import annotations

import argparse
from fractions import Fraction

from paretone.commands import arguments, train
from paretone.commands.command import Result
from paretone.commands.terminal import Session
from paretone.techniques import guidance_free
from paretone.techniques.guidance_free import FORM, GuidanceFreeRequest
from paretone.wording import counted, part_of

NAME = "train cfg-free"
SUMMARY = "Fine-tune a model on recordings so that one branch replaces the two of guidance."

OPTIONS = train.form_knobs(FORM, "method", "times", "stop_gradient", "weight_warm_up", "warm_up")


def declare(parser: argparse.ArgumentParser) -> None:
    train.add_speech(parser)
    group = parser.add_argument_group("CFG-free")
    group.add_argument(
        "--weight",
        "--w",
        type=_number,
        required=True,
        metavar="w",
        help="above 0, below 1; replaces guidance of strength w/(1-w): 0.5 is 1, 2/3 is 2",
    )
    arguments.add_knobs(group, OPTIONS)
    group.add_argument(
        "--latest",
        type=arguments.finite,
        default=1.0,
        metavar="t",
        help="no guidance in targets after this flow time (default: 1)",
    )
    group.add_argument(
        "--average-difference",
        action="store_true",
        help="take v_c - v_u from the averaged weights; a third pass per step",
    )
    group.add_argument(
        "--stages",
        type=arguments.positive,
        nargs="*",
        default=(),
        metavar="STEPS",
        help="also keep the weights after these steps; paretone view weights-over-training draws them",
    )
    train.add_training(
        parser, "3e-4 below 20 million parameters, else 1e-5", "AdamW for everything; 0.005 suits small models"
    )


def run(options: argparse.Namespace, session: Session) -> Result:
    request = GuidanceFreeRequest(
        weight=options.weight,
        latest=options.latest,
        average_difference=options.average_difference,
        stages=tuple(options.stages),
        **arguments.given(options, OPTIONS),
        **train.fine_tuning_request(options),
    )
    tuned = train.trained(guidance_free.NAME, request, session)
    strength = tuned.figures["equivalent_guidance"]
    text = (
        f"Wrote {tuned.checkpoint}: w = {options.weight:.4g}, one branch in place of guidance {strength:.4g}, "
        f"{counted(tuned.steps, 'step', 'steps')} by {request.method}."
    )
    if tuned.is_first:  # The others do not validate.
        text += f"\nOn held-out speech, one branch has learned {part_of(tuned.validation['learnt'])} of the guidance."
    figures = {"weight": options.weight, "equivalent_guidance": strength, "method": request.method}
    return train.result(options, tuned, text, figures)


def _number(text: str) -> float:
    try:
        return float(Fraction(text)) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be a number, or a fraction such as 2/3, not {text!r}") from None
