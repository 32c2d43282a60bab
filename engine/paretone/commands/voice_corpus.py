"""``paretone train voice-corpus``: the natural speech that ``voice-`` recipes learn from."""

from __future__ import annotations

import argparse
from pathlib import Path

from paretone.commands import arguments
from paretone.commands.command import Result, Session

SUMMARY = "Make natural speech to train on, in hundreds of voices, with hibari-tts."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument(
        "--work", type=Path, required=True, metavar="DIR", help="folder of the corpus; existing clips are reused"
    )
    parser.add_argument(
        "--voices", type=arguments.positive, default=320, help="voices to train on (default: %(default)s)"
    )
    parser.add_argument(
        "--sentences", type=arguments.positive, default=20, help="sentences of every voice (default: %(default)s)"
    )
    parser.add_argument("--seed", type=arguments.count, default=1, help="seed of texts and voices (default: 1)")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Make what is missing, and report the corpus."""
    from paretone.training.natural_corpus import CorpusOptions, make_corpus
    from paretone.training.natural_teacher import NaturalTeacher

    chosen = CorpusOptions(options.voices, options.sentences, seed=options.seed)
    session.terminal.status("Speaking")
    corpus = make_corpus(options.work, chosen, NaturalTeacher, session.terminal.progress)
    clips, hours = len(corpus.training), corpus.seconds / 3600
    data = {"folder": str(options.work), "clips": clips, "held_out": len(corpus.held_out), "hours": round(hours, 3)}
    return Result(data, f"{clips} clips, {hours:.2f} h of speech, are in {options.work}.")
