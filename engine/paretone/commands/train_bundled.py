"""``paretone train voice-lm`` and the like: the models that ship, made only from speech of a free synthesiser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.commands import arguments
from paretone.commands.command import Result, Session
from paretone.commands.terminal import Terminal
from paretone.training.requests import Follower

if TYPE_CHECKING:
    from paretone.training.session import Milestone

SUMMARIES = {
    "voice-vocoder": "Make the bundled vocoder from a voice-corpus.",
    "voice-f5": "Make the bundled F5-TTS from a voice-corpus.",
    "voice-megatts3": "Make the bundled MegaTTS 3 from a voice-corpus.",
    "voice-tokenizer": "Make the tokenizer of the bundled language model from a voice-corpus.",
    "voice-codec": "Make the codec of the bundled masked-diffusion model from a voice-corpus.",
    "voice-lm": "Make the bundled speech language model from a voice-corpus, through a voice-tokenizer.",
    "voice-omni": "Make the bundled masked-diffusion model from a voice-corpus, through a voice-codec.",
}
"""By the names of :data:`paretone.training.recipes.bundled_training.RECIPES`, which imports torch."""
CODECS = {"voice-lm": "voice-tokenizer", "voice-omni": "voice-codec"}
"""Recipes whose exports others speak through."""
CONTINUING = ("voice-vocoder", "voice-f5")
"""Recipes that can start from exported weights."""


def declare(parser: argparse.ArgumentParser, recipe: str) -> None:
    """Add the arguments of ``recipe``."""
    parser.set_defaults(codec=None, initial=None)
    arguments.add_run(parser, "model", "export/ in the work folder")
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        help="folder of the corpus (default: voice-corpus/ next to the work folder)",
    )
    if recipe in CODECS:
        parser.add_argument(
            "--codec",
            type=Path,
            metavar="DIR",
            help=f"exported codec to speak through (default: {CODECS[recipe]}/export next to the work folder)",
        )
    if recipe in CONTINUING:
        parser.add_argument(
            "--initial", type=Path, metavar="DIR", help="exported folder to start from (default: random weights)"
        )
    group = arguments.add_budget(parser, threads=1)
    group.add_argument("--device", default="cpu", help="auto, cpu, cuda or mps (default: cpu)")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Make it, and say where it lies."""
    import torch

    from paretone import device
    from paretone.training.recipes.bundled_training import BundledTraining, train_bundled
    from paretone.training.session import Budget

    torch.set_num_threads(options.threads or device.thread_count())
    job = BundledTraining(
        recipe=options.recipe,
        work=options.work,
        budget=Budget(options.minutes, options.steps),
        corpus=options.corpus,
        codec=options.codec,
        initial=options.initial,
        half_precision=options.half,
        rate_scale=options.rate_scale,
        device=options.device,
        resume=options.resume,
        export=options.export,
    )
    made = train_bundled(job, TerminalFollower(session.terminal))
    data = {"folder": str(made.folder), "steps": made.steps, "seconds": made.seconds, "validation": made.validation}
    return Result(data, f"The model is in {made.folder}: {made.steps} steps, {made.seconds:.0f} s.")


class TerminalFollower(Follower):
    """Shows a training in the terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def check(self) -> None:
        self._terminal.check()

    def progress(self, done: int, total: int) -> None:
        self._terminal.progress(done, total)

    def status(self, text: str) -> None:
        """Show a line; a separate bar begins with the training itself."""
        self._terminal.status(text)
        if text == "Training":
            self._terminal.begin()

    def milestone(self, milestone: Milestone) -> None:
        """Show how much of the budget is spent."""
        self._terminal.progress(round(arguments.SHARES * milestone.share), arguments.SHARES)
