"""``paretone train draft``: a smaller model that proposes tokens to a language model."""

from __future__ import annotations

import argparse
from pathlib import Path

from paretone.commands import arguments, companion_args
from paretone.commands.result import Result
from paretone.commands.session import JOB, Session
from paretone.session.commands import Prepare
from paretone.techniques import speculative
from paretone.techniques.speculative.requests import DraftRequest

NAME = "train draft"
SUMMARY = "Train a draft that proposes tokens to a speech language model, for speculative decoding (SSD)."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    group = parser.add_argument_group("draft")
    group.add_argument(
        "--lower", type=arguments.positive, default=2, help="lowest layers, which learn (default: %(default)s)"
    )
    group.add_argument(
        "--upper",
        type=arguments.count,
        help="topmost layers, which stay as they are (default: a quarter of the model's; of a dozen or fewer none)",
    )
    group.add_argument(
        "--spoken-share",
        type=arguments.finite,
        default=0.2,
        metavar="SHARE",
        help="weight of the cross-entropy in the loss, against the divergence from the target; 1 is the published loss "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--overlap-share",
        type=arguments.finite,
        default=0.5,
        metavar="SHARE",
        help="weight of the rejected probability in the rest of the loss, against the divergence "
        "(default: %(default)s)",
    )
    group.add_argument("--initial", type=Path, metavar="FILE", help="draft of the same layers to start from")
    companion_args.declare(parser)


def run(options: argparse.Namespace, session: Session) -> Result:
    """Train, and say where the result lies."""
    request = DraftRequest(
        **companion_args.request(options),
        lower=options.lower,
        upper=options.upper,
        spoken_share=options.spoken_share,
        overlap_share=options.overlap_share,
        initial=arguments.path_text(options.initial),
    )
    done = session.carry_out(Prepare(JOB, speculative.NAME, request), arguments.showing_training(session.terminal))
    return companion_args.result(done.result)
