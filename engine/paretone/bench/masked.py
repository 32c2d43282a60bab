"""Shared by benches of masked models: options and model."""

from __future__ import annotations

import argparse

from paretone.bench import bundled
from paretone.commands.arguments import positive
from paretone.errors import SettingError
from paretone.models.families.masked import MaskedSpeech


def add_arguments(parser: argparse.ArgumentParser, rounds: int) -> None:
    """The options that these benches have in common."""
    bundled.add_family_arguments(parser, "omni-mini", rounds)
    parser.add_argument("--steps", type=positive, default=16, help="demasking steps (default: %(default)s)")


def loaded(arguments: argparse.Namespace) -> MaskedSpeech:
    """The model that the options name, on as many threads as they say."""
    model = bundled.loaded_on_threads(arguments)
    if not isinstance(model, MaskedSpeech):
        raise SettingError(f"{model.info.title} is not a masked model; choose one of these with --model.")
    return model
