"""Arguments that trainings of smaller companions of a language model share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.training.requests import Trained


def declare(parser: argparse.ArgumentParser) -> None:
    """Add them."""
    arguments.add_model(parser, arguments.DEFAULT_LANGUAGE_MODEL)
    arguments.add_run(parser)
    group = parser.add_argument_group("training data")
    group.add_argument(
        "--sentences",
        type=arguments.count,
        default=600,
        help="sentences that the model generates per voice; 0: none (default: %(default)s)",
    )
    group.add_argument(
        "--corpus", type=Path, metavar="DIR", help="natural speech, for models that speak naturally: a voice-corpus"
    )
    group.add_argument("--manifest", type=Path, metavar="FILE", help="recordings: CSV with audio,text,phones,voice,set")
    group = arguments.add_budget(parser)
    group.add_argument(
        "--positions", type=arguments.positive, default=1_600, help="phones and tokens per step (default: %(default)s)"
    )
    group.add_argument(
        "--rate",
        type=arguments.above_zero,
        help="learning rate of AdamW (default: 1e-3 below 20 million parameters; above, 1e-5 for students and 1e-4 for "
        "drafts)",
    )
    group.add_argument(
        "--matrix-rate",
        type=arguments.above_zero,
        metavar="RATE",
        help="learning rate of Muon for the matrices of the layers (default: 0.01 below 20 million parameters if no "
        "--rate is given, else AdamW for everything)",
    )
    group.add_argument("--seed", type=arguments.seed, default=1, help="seed of speech and order (default: %(default)s)")


def request(options: argparse.Namespace) -> dict[str, Any]:
    """Values of these arguments, as every :class:`paretone.training.requests.CompanionRequest` takes it."""
    return {
        "model": options.model,
        "folder": options.folder,
        "manifest": arguments.path_text(options.manifest),
        "sentences": options.sentences,
        "corpus": arguments.path_text(options.corpus),
        "positions": options.positions,
        "rate": options.rate,
        "matrix_rate": options.matrix_rate,
        "seed": options.seed,
        **arguments.training_request(options),
    }


def result(trained: Trained) -> Result:
    """The result of a training for the command line."""
    data = {
        "checkpoint": trained.checkpoint,
        **dict(trained.figures),
        "steps": trained.steps,
        "seconds": trained.seconds,
        "validation": dict(trained.validation),
    }
    return Result(data, f"Wrote {trained.checkpoint}, {trained.steps} steps.\n{trained.summary}")
