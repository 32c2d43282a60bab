"""``paretone train draft`` and ``paretone train spade``: smaller companions of a language model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import arguments
from engine.commands.result import Result
from engine.commands.session import Session
from engine.techniques.spade import parsed_layers

if TYPE_CHECKING:
    from engine.training.draft import DraftOptions
    from engine.training.spade import StudentOptions

DEFAULT_MODEL = "lm-mini"
DRAFT, SPADE = "draft", "spade"


def declare_draft(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``train draft``."""
    group = parser.add_argument_group("draft")
    group.add_argument(
        "--lower", type=arguments.positive, default=2, help="lowest layers, which learn (default: %(default)s)"
    )
    group.add_argument(
        "--upper", type=arguments.count, default=0, help="topmost layers, which stay as they are (default: %(default)s)"
    )
    group.add_argument(
        "--spoken-share",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="of the cross-entropy in the loss, beside the divergence from the target; 1 is the published loss "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--overlap-share",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="of what would be rejected, in the rest of the loss; the divergence makes up what is left "
        "(default: %(default)s)",
    )
    group.add_argument("--initial", type=Path, metavar="FILE", help="draft of the same layers to start from")
    _declare_common(parser)


def declare_spade(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``train spade``."""
    group = parser.add_argument_group("student")
    kept = group.add_mutually_exclusive_group()
    kept.add_argument(
        "--depth", type=arguments.positive, default=6, help="layers to keep, by importance (default: %(default)s)"
    )
    kept.add_argument("--layers", type=_layers, default=(), metavar="0,1,5", help="which layers to keep, from 0")
    group.add_argument(
        "--stages",
        type=float,
        nargs="*",
        default=(),
        metavar="MINUTES",
        help="keep the student as it is after so many minutes of the budget, too",
    )
    group.add_argument(
        "--published-latents",
        action="store_true",
        help="errors of layer outputs as published, not relative to the teacher's size",
    )
    _declare_common(parser)


def _declare_common(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser, DEFAULT_MODEL)
    arguments.add_run(parser)
    group = parser.add_argument_group("what to learn from")
    group.add_argument(
        "--sentences",
        type=arguments.count,
        default=600,
        help="that the model speaks itself in each of its voices; 0 for recordings only (default: %(default)s)",
    )
    group.add_argument("--manifest", type=Path, metavar="FILE", help="recordings: CSV with audio,text,phones,voice,set")
    group = arguments.add_budget(parser)
    group.add_argument(
        "--positions", type=arguments.positive, default=1_600, help="phones and tokens a step (default: %(default)s)"
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
        help="learning rate of Muon for the matrices of the layers (default: 0.01 below 20 million parameters where no "
        "--rate is given, else AdamW for everything)",
    )
    group.add_argument("--seed", type=int, default=1, help="of what is spoken and of the order (default: %(default)s)")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Train, and say where the result lies."""
    from engine.training.language_training import LanguageTraining, train_language

    job = LanguageTraining(
        model=options.model,
        options=_options(options),
        depth=getattr(options, "depth", 0),
        stages=tuple(getattr(options, "stages", ())),
        sentences=options.sentences,
        manifest=options.manifest,
        initial=getattr(options, "initial", None),
        rate=options.rate,
        matrix_rate=options.matrix_rate,
        folder=options.folder,
        **arguments.training_run(options),
    )
    trained = train_language(job, arguments.TrainingFollower(session.terminal))
    data = {
        "checkpoint": str(trained.checkpoint),
        **dict(trained.figures),
        "steps": trained.steps,
        "seconds": trained.seconds,
        "validation": trained.validation,
    }
    return Result(data, f"Wrote {trained.checkpoint}, {trained.steps} steps.\n{trained.summary}")


def _options(options: argparse.Namespace) -> DraftOptions | StudentOptions:
    from engine.training.draft import DraftOptions
    from engine.training.spade import StudentOptions

    common = {"positions": options.positions, "seed": options.seed, **arguments.training_manner(options)}
    if options.recipe == DRAFT:
        shares = {"spoken_share": options.spoken_share, "overlap_share": options.overlap_share}
        return DraftOptions(**common, lower=options.lower, upper=options.upper, **shares)
    return StudentOptions(**common, retained=options.layers, relative_latents=not options.published_latents)


def _layers(text: str) -> tuple[int, ...]:
    try:
        layers = parsed_layers(text)
    except ValueError:
        layers = ()
    if not layers:
        raise argparse.ArgumentTypeError(f"must be a list of layers such as 0,1,5, not {text!r}")
    return layers
