"""``paretone train``: weights that a technique needs, and small models, one recipe each.

What techniques train are commands of theirs; other recipes are named in ``BUNDLED``.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial

from paretone.commands import train_bundled, voice_corpus
from paretone.commands.command import Command, Result, Session, technique_commands

NAME = "train"
SUMMARY = "Train weights for a technique, such as a draft or a student, or a bundled model."


BUNDLED = (
    *(
        Command(name, summary, partial(train_bundled.declare, recipe=name), train_bundled.run)
        for name, summary in train_bundled.SUMMARIES.items()
    ),
    Command("voice-corpus", voice_corpus.SUMMARY, voice_corpus.declare, voice_corpus.run),
)


def recipes() -> tuple[Command, ...]:
    """Trainings of techniques, then of the bundled models."""
    found = [
        replace(one, name=one.name.removeprefix(f"{NAME} "))
        for one in technique_commands(f"{NAME} {one.name}" for one in BUNDLED)
        if one.name.startswith(f"{NAME} ")
    ]
    return (*found, *BUNDLED)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments: one command per recipe."""
    names = parser.add_subparsers(title="recipes", metavar="RECIPE", dest="recipe", required=True)
    for recipe in recipes():
        one = names.add_parser(recipe.name, help=recipe.summary, description=recipe.summary)
        # Options before the recipe's name must not be reset by defaults after it.
        for flag, meaning in (("--json", "print one JSON object"), ("--quiet", "show no progress")):
            one.add_argument(flag, action="store_true", default=argparse.SUPPRESS, help=meaning)
        one.set_defaults(train=recipe.run)
        recipe.declare(one)


def run(options: argparse.Namespace, session: Session) -> Result:
    """Train by the recipe."""
    return options.train(options, session)
