"""``paretone export-model``: a student or a draft as a checkpoint that others load."""

from __future__ import annotations

import argparse

from paretone.commands import arguments
from paretone.commands.output import place_for_folder
from paretone.commands.result import Result
from paretone.commands.session import JOB, Session
from paretone.session.commands import ExportWeights
from paretone.setting.knobs import Knob, Values
from paretone.techniques import speculative

NAME = "export-model"
SUMMARY = "Write a student or a draft of a speech language model as a checkpoint that others load."
KINDS = ("student", "draft")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("kind", choices=KINDS, help="what to write; a draft comes with the settings to use it with")
    arguments.add_model(parser, arguments.DEFAULT_LANGUAGE_MODEL)
    parser.add_argument("--file", metavar="FILE", default="", help="which one (default: the model's first)")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="output folder; existing files are not replaced")
    arguments.add_knobs(parser.add_argument_group("settings of a draft"), _settings())


def run(options: argparse.Namespace, session: Session) -> Result:
    """Write it."""
    settings = Values(arguments.given(options, _settings()))
    out = place_for_folder(options.out)
    command = ExportWeights(JOB, options.model, options.kind, options.file, str(out), settings, options.folder)
    names = session.carry_out(command).files
    return Result({"out": options.out, "files": list(names)}, f"Wrote {', '.join(names)}.")


def _settings() -> list[Knob]:
    return [knob for knob in speculative.TECHNIQUE.knobs if knob.name != "draft"]
