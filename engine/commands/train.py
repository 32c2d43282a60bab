"""``paretone train``: weights that a technique needs, and small models, one recipe each.

Adding a recipe means naming it in ``RECIPES``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from engine.commands import train_bundled, train_guidance_free, train_language
from engine.commands.result import Result
from engine.commands.session import Session

NAME = "train"
SUMMARY = "Train weights that a technique needs (CFG-free ones, drafts, students), or a bundled model."


@dataclass(frozen=True)
class Recipe:
    """Something that can be trained."""

    name: str
    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Session], Result]


RECIPES = (
    Recipe(
        "cfg-free",
        "Fine-tune a model on recordings so that one branch speaks as well as two under guidance.",
        train_guidance_free.declare,
        train_guidance_free.run,
    ),
    Recipe(
        train_language.DRAFT,
        "Train a draft that proposes tokens to a speech language model, for speculative decoding (SSD).",
        train_language.declare_draft,
        train_language.run,
    ),
    Recipe(
        train_language.SPADE,
        "Train a student with fewer layers, which learns from the whole speech language model (SPADE).",
        train_language.declare_spade,
        train_language.run,
    ),
    *(
        Recipe(name, summary, partial(train_bundled.declare, recipe=name), train_bundled.run)
        for name, summary in train_bundled.SUMMARIES.items()
    ),
)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments: a command of its own for every recipe."""
    names = parser.add_subparsers(title="recipes", metavar="RECIPE", dest="recipe", required=True)
    for recipe in RECIPES:
        one = names.add_parser(recipe.name, help=recipe.summary, description=recipe.summary)
        # What stands before the recipe's name must not be reset by what does not stand after it.
        for flag, meaning in (("--json", "print one JSON object"), ("--quiet", "show no progress")):
            one.add_argument(flag, action="store_true", default=argparse.SUPPRESS, help=meaning)
        one.set_defaults(train=recipe.run)
        recipe.declare(one)


def run(options: argparse.Namespace, session: Session) -> Result:
    """Train by the recipe."""
    return options.train(options, session)
