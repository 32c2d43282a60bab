"""``paretone export-table``: a profile's strategy table in the official code's form."""

from __future__ import annotations

import argparse

from paretone.commands.output import apart, writable, write_json
from paretone.commands.result import Result
from paretone.commands.session import Session
from paretone.errors import ProfileError
from paretone.setting.profile import Profile

NAME = "export-table"
SUMMARY = "Write a profile's strategy table in the official form."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("profile", metavar="PROFILE", help="profile to read")
    parser.add_argument("--out", required=True, metavar="FILE", help="official table to write")


def run(options: argparse.Namespace, session: Session) -> Result:
    """Write the table."""
    profile, out = Profile.load(options.profile), writable(options.out)
    apart({"--out": out}, {"PROFILE": options.profile})
    table = profile.artefact("table")
    if table is None:
        raise ProfileError(f"{options.profile} has no strategy table; export one that uses DiTReducio.")
    write_json(out, table.to_official())
    data = {"out": str(out), "layers": table.layers, "steps": table.steps}
    return Result(data, f"Wrote the table of {table.layers} layers and {table.steps} steps to {out}.")
