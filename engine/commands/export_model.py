"""``paretone export-model``: a student or a draft as a Hugging Face checkpoint."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.commands import arguments
from engine.commands.result import Result
from engine.commands.train_language import DEFAULT_MODEL
from engine.errors import SettingError
from engine.knobs import Knob, Values
from engine.models import catalogue
from engine.setting import Engaged
from engine.techniques import knobs_of, speculative
from engine.terminal import Terminal

NAME = "export-model"
SUMMARY = "Write a student or a draft of a speech language model as a Hugging Face checkpoint."
KINDS = ("student", "draft")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("kind", choices=KINDS, help="what to write; a draft comes with the settings to use it with")
    arguments.add_model(parser, DEFAULT_MODEL)
    parser.add_argument("--file", metavar="FILE", help="which one (default: the first that belongs to the model)")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="folder to write to; no file there is replaced")
    arguments.add_knobs(parser.add_argument_group("settings of a draft"), _settings())


def run(options: argparse.Namespace, terminal: Terminal) -> Result:
    """Write it."""
    from engine.export.delivery import deliver
    from engine.export.language import draft_contents, student_contents
    from engine.models.checkpoints import fingerprint
    from engine.models.language_weights import find_language_weights, places
    from engine.models.lm_mini.checkpoint import LmMiniFolder

    chosen = catalogue.entry(options.model)
    if chosen.loader != "lm_mini":
        raise SettingError(f"{chosen.title} has no students or drafts that could be written; choose {DEFAULT_MODEL}.")
    folder = LmMiniFolder(Path(options.folder) if options.folder else chosen.folder, terminal.check)
    base = fingerprint(folder.weights_path, terminal.check)
    found = find_language_weights(places(chosen.id, folder.root), base, terminal.check)
    there = found.students if options.kind == KINDS[0] else found.drafts
    fitting = [one for one in there if not options.file or Path(one.path).resolve() == Path(options.file).resolve()]
    if not fitting:
        which = f"{options.file} is none of its {options.kind}s" if options.file else f"it has no {options.kind}"
        raise SettingError(f"{chosen.title} cannot be written so: {which}; train one (paretone train).")
    if options.kind == KINDS[0]:
        contents = student_contents(folder, base, fitting[0])
    else:
        knobs = {knob.name: getattr(options, knob.name) for knob in _settings() if hasattr(options, knob.name)}
        engaged = Engaged(speculative.NAME, Values(knobs))
        knobs_of(engaged)
        contents = draft_contents(folder, base, fitting[0], engaged)
    terminal.status(f"Writing to {options.out}")
    written = deliver(Path(options.out), contents, terminal.progress)
    names = ", ".join(path.name for path in written)
    return Result({"out": options.out, "files": [path.name for path in written]}, f"Wrote {names}.")


def _settings() -> list[Knob]:
    return [knob for knob in speculative.TECHNIQUE.knobs if knob.name != "draft"]
