"""``python -m tests.tools.recipes RECIPE``: make a bundled model, see :mod:`tests.tools.recipes`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from paretone import cli, device
from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.terminal import Session, Terminal
from paretone.commands.train import SHARES, add_budget, add_run
from paretone.training.requests import Follower, TrainingProgress
from paretone.training.session import Budget
from tests.tools.recipes.bundled_training import CONTINUING, BundledTraining, train_bundled

SUMMARIES = {
    "voice-vocoder": "Make the bundled vocoder from a voice-corpus.",
    "voice-f5": "Make the bundled F5-TTS from a voice-corpus.",
    "voice-megatts3": "Make the bundled MegaTTS 3 from a voice-corpus.",
    "voice-tokenizer": "Make the tokenizer of the bundled language model from a voice-corpus.",
    "voice-codec": "Make the codec of the bundled masked-diffusion model from a voice-corpus.",
    "voice-lm": "Make the bundled speech language model from a voice-corpus, through a voice-tokenizer.",
    "voice-omni": "Make the bundled masked-diffusion model from a voice-corpus, through a voice-codec.",
}
CODECS = {"voice-lm": "voice-tokenizer", "voice-omni": "voice-codec"}
"""Codec recipe of each recipe that needs one."""


def declare(parser: argparse.ArgumentParser, recipe: str) -> None:
    parser.set_defaults(codec=None, initial=None)
    add_run(parser, "model", "export/ in the work folder")
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
    group = add_budget(parser, threads=1)
    group.add_argument("--device", default="cpu", help="auto, cpu, cuda or mps (default: cpu)")


def run(options: argparse.Namespace, session: Session) -> Result:
    torch.set_num_threads(options.threads or device.thread_count())
    job = BundledTraining(
        recipe=options.recipe,
        work=options.work,
        budget=Budget(options.minutes, options.steps, options.epochs),
        corpus=options.corpus,
        codec=options.codec,
        initial=options.initial,
        half_precision=options.half,
        rate_scale=options.rate_scale,
        device=options.device,
        resume=options.resume,
        export=options.export,
    )
    made = train_bundled(job, _TerminalFollower(session.terminal))
    data = {"folder": str(made.folder), "steps": made.steps, "seconds": made.seconds, "validation": made.validation}
    return Result(data, f"The model is in {made.folder}: {made.steps} steps, {made.seconds:.0f} s.")


class _TerminalFollower(Follower):
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def check(self) -> None:
        self._terminal.check()

    def progress(self, done: int, total: int) -> None:
        self._terminal.progress(done, total)

    def status(self, text: str) -> None:
        self._terminal.status(text)
        if text == "Training":
            self._terminal.begin()

    def milestone(self, milestone: TrainingProgress) -> None:
        """Show the spent share of the budget."""
        self._terminal.progress(round(SHARES * milestone.share), SHARES)


def main(given: Sequence[str] | None = None) -> int:
    parser = arguments.Parser(prog="python -m tests.tools.recipes", description=__doc__)
    names = parser.add_subparsers(title="recipes", metavar="RECIPE", dest="recipe", required=True)
    for recipe, summary in SUMMARIES.items():
        one = names.add_parser(recipe, help=summary, description=summary)
        arguments.add_output(one)
        one.set_defaults(run=run, json=False, quiet=False)
        declare(one, recipe)
    return cli.main(given, lambda said: cli.carry_out(parser.parse_args(said)))


if __name__ == "__main__":
    sys.exit(main())
