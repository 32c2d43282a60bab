"""``paretone export``: a profile in a form that runs without Paretone."""

from __future__ import annotations

import argparse

from engine.commands.output import place_for_folder
from engine.commands.result import Result
from engine.commands.session import JOB, Session
from engine.export.targets import targets
from engine.session.commands import ExportProfile
from engine.setting.profile import Profile

NAME = "export"
SUMMARY = "Write a profile for the official f5-tts package, or the weights that it runs."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument(
        "--target",
        required=True,
        choices=[one.name for one in targets()],
        help="; ".join(f"{one.name}: {one.summary}" for one in targets()),
    )
    parser.add_argument("--profile", required=True, metavar="FILE", help="profile to read")
    parser.add_argument("--folder", default="", metavar="FOLDER", help="folder of the checkpoint, if not the usual one")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="output folder; existing files are not replaced")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Export the profile."""
    out, profile = place_for_folder(options.out), Profile.load(options.profile)
    exported = session.carry_out(ExportProfile(JOB, profile, options.target, str(out), options.folder))
    return Result({"out": str(out), "files": list(exported.files)}, f"Wrote {', '.join(exported.files)}.")
