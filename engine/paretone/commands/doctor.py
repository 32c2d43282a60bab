"""``paretone doctor``: state of this installation, its problems and their remedies."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from paretone.commands.command import Result
from paretone.commands.terminal import Session

NAME = "doctor"
SUMMARY = "Check this installation: versions, device, sound, fonts, folders, space, plug-ins, packages."


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--share", action="store_true", help="name no folder of yours, for a report to others")


def run(options: argparse.Namespace, session: Session) -> Result:
    from paretone import device
    from paretone.doctor import PROBLEM, as_text, examine, shareable

    found = examine(device.available())
    if options.share:
        found = shareable(found)
    problems = sum(one.state == PROBLEM for one in found)
    return Result({"checks": [asdict(one) for one in found], "problems": problems}, as_text(found))
