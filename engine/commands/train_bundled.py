"""``paretone train lm-mini`` and the like: the models that ship, made from nothing but ``flite`` speech."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import arguments
from engine.commands.result import Result
from engine.commands.session import JOB, Session
from engine.session.messages import TrainModel
from engine.training.requests import BundledRequest

if TYPE_CHECKING:
    pass

SUMMARIES = {
    "vocos-mini": "Make the bundled vocoder from flite's speech.",
    "f5-mini": "Make the bundled F5-TTS from flite's speech.",
    "mel-codec": "Make the codec of the bundled MegaTTS 3 from flite's speech.",
    "megatts3-mini": "Make the bundled MegaTTS 3 from flite's speech, through a mel-codec.",
    "speech-tokenizer": "Make the tokenizer of the bundled language model from flite's speech.",
    "lm-mini": "Make the bundled speech language model from flite's speech, through a speech-tokenizer.",
    "codec-mini": "Make the codec of the bundled masked-diffusion model from flite's speech.",
    "omni-mini": "Make the bundled masked-diffusion model from flite's speech, through a codec-mini.",
}
"""By the names of :data:`engine.training.recipes.bundled_training.RECIPES`, which imports torch."""
THROUGH_A_CODEC = ("megatts3-mini", "lm-mini", "omni-mini")


def declare(parser: argparse.ArgumentParser, recipe: str) -> None:
    """Add the arguments of ``recipe``."""
    parser.set_defaults(codec=None, initial=None)
    arguments.add_run(parser, "model", "export/ in the work folder")
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", help="folder of the corpus (default: corpus/ next to the work folder)"
    )
    parser.add_argument(
        "--sentences",
        type=arguments.positive,
        default=3_400,
        help="sentences by flite per voice (default: %(default)s)",
    )
    if recipe in THROUGH_A_CODEC:
        parser.add_argument(
            "--codec", type=Path, metavar="DIR", help="exported codec to speak through (default: bundled)"
        )
    if recipe == "vocos-mini":
        parser.add_argument("--initial", type=Path, metavar="DIR", help="official folder with the initial weights")
    group = arguments.add_budget(parser, threads=1)
    group.add_argument("--device", default="cpu", help="auto, cpu, cuda or mps (default: cpu)")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Make it, and say where it lies."""
    request = BundledRequest(
        model=options.recipe,
        sentences=options.sentences,
        corpus=arguments.path_text(options.corpus),
        codec=arguments.path_text(options.codec),
        initial=arguments.path_text(options.initial),
        **arguments.training_request(options),
    )
    made = session.carry_out(TrainModel(JOB, request), arguments.showing_training(session.terminal)).result
    data = {
        "folder": made.checkpoint,
        "steps": made.steps,
        "seconds": made.seconds,
        "validation": dict(made.validation),
    }
    return Result(data, f"The model is in {made.checkpoint}: {made.steps} steps, {made.seconds:.0f} s.")
