"""``paretone export``: a profile in a form that runs without Paretone."""

from __future__ import annotations

import argparse

from paretone.commands.command import Result
from paretone.commands.output import place_for_folder
from paretone.commands.terminal import JOB, Session
from paretone.errors import PlainError, SettingError
from paretone.export.accounts import Account
from paretone.export.targets import say, target, targets
from paretone.session.commands import ExportProfile
from paretone.setting.profile import Profile

NAME = "export"
SUMMARY = "Write a profile for another program: a server, an official package, or only the weights that it runs."
EPILOGUE = (
    "What an export honours of the profile and what it drops is printed before anything is written. With --say nothing "
    "is written; without --target, it says that for every target."
)


def declare(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOGUE
    meanings = "; ".join(f"{one.name}: {one.summary}" for one in targets())
    parser.add_argument("--target", choices=[one.name for one in targets()], help=meanings)
    parser.add_argument("--profile", required=True, metavar="FILE", help="profile to read")
    parser.add_argument("--folder", default="", metavar="FOLDER", help="folder of the checkpoint, if not the usual one")
    parser.add_argument("--out", metavar="FOLDER", help="output folder; existing files are not replaced")
    parser.add_argument("--say", action="store_true", help="only say what is honoured and what is dropped")


def run(options: argparse.Namespace, session: Session) -> Result:
    if not options.say and (options.target is None or options.out is None):
        raise SettingError("Give --target and --out, or --say to see what the targets would do with the profile.")
    out = None if options.out is None else place_for_folder(options.out)
    profile = Profile.load(options.profile)
    if options.say and not options.target:
        return _all(profile, options.folder)
    chosen = target(options.target)
    said = say(profile, chosen, options.folder)
    if options.say or out is None:
        return Result({"target": chosen.name, **said.to_json()}, "\n".join(said.sentences()))
    if not said.why_not:
        session.terminal.say("\n".join(said.sentences()))
    exported = session.carry_out(ExportProfile(JOB, profile, chosen.name, str(out), options.folder))
    data = {"out": str(out), "files": list(exported.files), **said.to_json()}
    return Result(data, f"Wrote {', '.join(exported.files)}.")


def _all(profile: Profile, folder: str) -> Result:
    data, lines = {}, []
    for one in targets():
        try:
            said = say(profile, one, folder)
        except PlainError as error:  # The checkpoint is not there.
            said = Account(why_not=str(error))
        data[one.name] = said.to_json()
        lines += [f"{one.name}: {one.title}", *(f"  {line}" for line in said.sentences())]
    return Result({"targets": data}, "\n".join(lines))
