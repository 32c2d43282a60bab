"""What the commands that fine-tune a model have in common: its speech, its learning rates, and how they end."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paretone.commands import arguments
from paretone.commands.command import JOB, Result, Session
from paretone.models import catalogue
from paretone.session.commands import Prepare
from paretone.training.requests import OWN_SENTENCES, FineTuningRequest, Trained, usual_own_sentences


def add_speech(parser: argparse.ArgumentParser) -> None:
    """Which model, and what it learns from."""
    arguments.add_model(parser)
    group = parser.add_argument_group("speech to learn from")
    group.add_argument(
        "--manifest",
        type=Path,
        metavar="FILE",
        help="CSV with audio,text and optionally phones,voice,set (default, for bundled models only: synthesised "
        "speech)",
    )
    group.add_argument(
        "--sentences",
        type=arguments.count,
        metavar="N",
        help="sentences that the model says itself in each of its voices, in addition to a manifest (default: none "
        f"with a manifest and for bundled models, else {OWN_SENTENCES})",
    )
    group.add_argument(
        "--texts", metavar="FILE", help="file of these sentences, one per line; - for standard input (default: made up)"
    )
    group.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        help="folder of paretone train voice-corpus, for bundled models (default: voice-corpus next to --work)",
    )
    arguments.add_run(parser)


def add_training(parser: argparse.ArgumentParser, usual: str, matrices: str) -> None:
    """Budget and learning rates; ``usual`` and ``matrices`` describe the default rates."""
    group = arguments.add_budget(parser)
    group.add_argument("--rate", type=arguments.above_zero, help=f"learning rate (default: {usual})")
    group.add_argument(
        "--matrix-rate",
        type=arguments.above_zero,
        metavar="RATE",
        help=f"learning rate of Muon for the matrices of the layers (default: {matrices})",
    )
    group.add_argument(
        "--frames", type=arguments.positive, default=1_800, help="the model's frames per step (default: %(default)s)"
    )
    group.add_argument("--seed", type=arguments.seed, default=1, help="seed of order, times and noise (default: 1)")


def request_values(options: argparse.Namespace) -> dict[str, Any]:
    """Values of both, as every :class:`paretone.training.requests.FineTuningRequest` takes them. Raises
    :class:`paretone.errors.TextError`."""
    texts = arguments.typed_lines(options.texts) if options.texts else ()
    return {
        "model": options.model or arguments.DEFAULT_MODEL,
        "manifest": arguments.path_text(options.manifest),
        "corpus": arguments.path_text(options.corpus),
        "sentences": _sentences(options, len(texts)),
        "texts": texts,
        "learning_rate": options.rate,
        "matrix_rate": options.matrix_rate,
        "frames": options.frames,
        "seed": options.seed,
        "folder": options.folder,
        "variant": options.variant,
        **arguments.training_request(options),
    }


def _sentences(options: argparse.Namespace, texts: int) -> int:
    if texts or options.sentences is not None or options.manifest is not None:
        return options.sentences or texts
    return usual_own_sentences(catalogue.entry(options.model or arguments.DEFAULT_MODEL).bundled)


def train(technique: str, request: FineTuningRequest, session: Session) -> Trained:
    """Carry out ``request`` to the technique of that name, shown in the terminal."""
    command = Prepare(JOB, technique, request)
    trained: Trained = session.carry_out(command, arguments.showing_training(session.terminal)).result
    return trained


def result(options: argparse.Namespace, trained: Trained, figures: Mapping[str, object], text: str) -> Result:
    """What is said at the end: by one process of many."""
    if not trained.is_first:
        options.json = False
        return Result({})
    data = {
        "checkpoint": trained.checkpoint,
        **figures,
        "steps": trained.steps,
        "seconds": trained.seconds,
        "validation": dict(trained.validation),
    }
    return Result(data, text)
