"""Shared by benches of masked models: options, model, setting."""

from __future__ import annotations

import argparse

from engine.bench import bundled
from engine.errors import SettingError
from engine.models import load_model
from engine.models.catalogue import entry
from engine.models.families.masked import MaskedSpeech
from engine.setting.setting import Setting


def add_arguments(parser: argparse.ArgumentParser, rounds: int) -> None:
    """The options that these benches have in common."""
    parser.add_argument("--model", default="omni-mini", help="model of the catalogue (default: %(default)s)")
    parser.add_argument("--folder", default="", help="folder with its checkpoint, where it is not in its usual place")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of the processor (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=16, help="demasking steps (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=rounds, help="interleaved rounds (default: %(default)s)")
    parser.add_argument("--voice", default=bundled.VOICE, help="shipped voice (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first round (default: %(default)s)")


def loaded(arguments: argparse.Namespace) -> MaskedSpeech:
    """The model that the options name, on as many threads as they say."""
    import torch

    bundled.say(f"Loading {arguments.model} …")
    model = load_model(arguments.model, folder=arguments.folder, device=arguments.device)
    torch.set_num_threads(arguments.threads)
    if not isinstance(model, MaskedSpeech):
        raise SettingError(f"{model.info.title} is no masked model; choose one of these with --model.")
    return model


def baseline(arguments: argparse.Namespace) -> Setting:
    """The setting without techniques that the options describe."""
    return Setting(arguments.model, entry(arguments.model).options_with(steps=arguments.steps), seed=arguments.seed)
