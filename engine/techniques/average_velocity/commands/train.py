"""``paretone train average-velocity``: fine-tune a model so that few evaluations speak as many guided steps do."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.commands import arguments
from engine.commands.result import Result
from engine.commands.session import JOB, Session
from engine.session.commands import Prepare
from engine.setting.knobs import Values
from engine.techniques import average_velocity
from engine.techniques.average_velocity.requests import METHODS, TEACHER_STEPS, AverageVelocityRequest

NAME = "train average-velocity"
SUMMARY = "Fine-tune a model so that one to four evaluations replace many guided steps."
GUIDANCE = ("guidance", "intelligibility", "similarity")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    arguments.add_model(parser)
    parser.add_argument(
        "--manifest",
        type=Path,
        metavar="FILE",
        help="CSV with audio,text and optionally phones,voice,set (default, for bundled models only: synthesised "
        "speech)",
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        help="folder of paretone train voice-corpus, for bundled models (default: voice-corpus next to --work)",
    )
    arguments.add_run(parser)
    group = parser.add_argument_group("average velocity")
    group.add_argument(
        "--method",
        choices=METHODS,
        default=METHODS[0],
        help="displacement copies how far the guided model goes, mean-flow learns from speech alone (default: "
        "%(default)s)",
    )
    for name in GUIDANCE:
        group.add_argument(
            f"--{name}", type=float, metavar="STRENGTH", help="guidance to include (default: the model's usual one)"
        )
    group.add_argument(
        "--teacher-steps",
        type=arguments.positive,
        default=TEACHER_STEPS,
        help="steps of the model itself that one evaluation replaces in training (default: %(default)s)",
    )
    group = arguments.add_budget(parser)
    group.add_argument(
        "--rate",
        type=float,
        help="learning rate (default: 4e-4 below 20 million parameters, with Muon; else 1e-5, AdamW for everything)",
    )
    group.add_argument(
        "--matrix-rate", type=float, metavar="RATE", help="learning rate of Muon for the matrices of the layers"
    )
    group.add_argument(
        "--frames", type=arguments.positive, default=1_800, help="the model's frames per step (default: %(default)s)"
    )
    group.add_argument("--seed", type=int, default=1, help="seed of order, intervals and noise (default: 1)")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Train, and say where the result lies."""
    given = {name: getattr(options, name) for name in GUIDANCE if getattr(options, name) is not None}
    request = AverageVelocityRequest(
        model=options.model or arguments.DEFAULT_MODEL,
        manifest=arguments.path_text(options.manifest),
        corpus=arguments.path_text(options.corpus),
        guidance=Values(given),
        method=options.method,
        learning_rate=options.rate,
        matrix_rate=options.matrix_rate,
        frames=options.frames,
        teacher_steps=options.teacher_steps,
        seed=options.seed,
        folder=options.folder,
        variant=options.variant,
        **arguments.training_request(options),
    )
    command = Prepare(JOB, average_velocity.NAME, request)
    trained = session.carry_out(command, arguments.showing_training(session.terminal)).result
    if not trained.is_first:  # One process of many speaks for all.
        options.json = False
        return Result({})
    data = {
        "checkpoint": trained.checkpoint,
        **trained.figures,
        "steps": trained.steps,
        "seconds": trained.seconds,
        "validation": dict(trained.validation),
    }
    return Result(data, f"Wrote {trained.checkpoint}: {trained.steps} steps by {options.method}.\n{trained.summary}")
