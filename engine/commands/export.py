"""``paretone export``: a profile in a form that runs without Paretone."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.commands.output import folder
from engine.commands.result import Result
from engine.errors import ProfileError
from engine.profile import Profile
from engine.terminal import Terminal

NAME = "export"
SUMMARY = "Write a profile for the official f5-tts package, or its CFG-free weights."
TARGETS = ("f5-tts", "safetensors")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument(
        "--target",
        required=True,
        choices=TARGETS,
        help="f5-tts: a folder with the profile and a module that applies it to the official package; "
        "safetensors: CFG-free weights in the official layout",
    )
    parser.add_argument("--profile", required=True, metavar="FILE", help="profile to read")
    parser.add_argument("--folder", default="", metavar="FOLDER", help="where the checkpoint lies, if elsewhere")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="folder to write to")


def run(options: argparse.Namespace, terminal: Terminal) -> Result:
    """Export the profile."""
    from engine.export import f5_tts
    from engine.export.weights import GuidanceFreeWeights

    profile = Profile.load(options.profile)
    terminal.status("Reading the checkpoint")
    if options.target == "f5-tts":
        written = f5_tts.export(profile, folder(options.out), options.folder, terminal.check)
    else:
        checkpoint = f5_tts.checkpoint_of(profile, options.folder, terminal.check)
        weights = GuidanceFreeWeights.of(profile, checkpoint)
        if weights is None:
            raise ProfileError(
                f"{options.profile} runs the checkpoint as it is, with guidance: there are no CFG-free weights to "
                "write; engage CFG-free in the profile."
            )
        written = weights.write(folder(options.out))
    names = ", ".join(path.name for path in written)
    return Result({"out": str(Path(options.out)), "files": [path.name for path in written]}, f"Wrote {names}.")
