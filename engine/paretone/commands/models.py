"""``paretone models``: models, voices and techniques."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paretone.bench.report import table
from paretone.commands.command import Result
from paretone.commands.terminal import Session
from paretone.errors import CheckpointError
from paretone.models import catalogue
from paretone.models.base import Voice
from paretone.models.declaration import Model
from paretone.setting.knobs import Choice, Knob, Number, Switch
from paretone.techniques import applying_to, problems, techniques
from paretone.techniques.published import offered
from paretone.techniques.resolving import known
from paretone.wording import plain

NAME = "models"
SUMMARY = "List models, voices and techniques, with licences."


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="list only what this model has: options, voices, techniques, files"
    )
    parser.add_argument("--techniques", action="store_true", help="list techniques and their knobs only")
    parser.add_argument("--folder", default="", help="folder of MODEL's files, or a release that tells its model")


def run(options: argparse.Namespace, session: Session) -> Result:
    if named := options.model or catalogue.id_of(options.folder):
        return _of_one(catalogue.entry(named), options.folder, options.techniques)
    if options.folder:
        if not Path(options.folder).exists():
            raise CheckpointError(f"There is no folder {options.folder}; check the path.")
        raise CheckpointError(f"{options.folder} does not say which model it is; name it: paretone models MODEL.")
    found = [
        {name: getattr(one, name) for name in ("id", "title", "family", "licence", "available")}
        | {"downloadable": one.release is not None, "folder": str(one.folder), "summary": one.summary}
        for one in catalogue.models()
    ]
    speaking: dict[Voice, list[str]] = {}
    for model in catalogue.models():
        for voice in catalogue.voices(model.id):
            speaking.setdefault(voice, []).append(model.id)
    voices = [
        {"id": one.id, "title": one.title, "transcript": one.transcript, "models": models}
        for one, models in speaking.items()
    ]
    declared = [
        {name: getattr(one, name) for name in ("name", "title", "summary")}
        | {"paper": one.paper.reference, "prepared_by": one.prepared_by}
        | {"knobs": [{name: getattr(knob, name) for name in ("name", "default", "meaning")} for knob in one.knobs]}
        for one in techniques()
    ]
    knobs = [
        {"knob": f"{one.name}:{knob.name}", "default": plain(knob.default), "meaning": f"{knob.label}: {knob.meaning}"}
        for one in techniques()
        for knob in one.knobs
    ]
    rows = [
        {"model": one.id, "licence": one.licence, "available": _availability(one), "description": one.summary}
        for one in catalogue.models()
    ]
    blocks = [
        table(rows),
        table([{"voice": one["id"], "description": one["title"], "of": ", ".join(one["models"])} for one in voices]),
        table([{"technique": one["name"], "description": one["summary"]} for one in declared]),
        table(knobs),
    ]
    data: dict[str, object] = {"models": found, "voices": voices, "techniques": declared, "left_out": list(problems())}
    if options.techniques:
        blocks, data = blocks[2:], {name: data[name] for name in ("techniques", "left_out")}
    if problems():
        blocks.append(list(problems()))
    return Result(data, "\n\n".join("\n".join(block) for block in blocks))


def _of_one(chosen: Model, folder: str, techniques_only: bool) -> Result:
    """One model with the ranges of its options and of its techniques' knobs."""
    usual = chosen.options_with()
    options = [_declared(knob, usual[knob.name]) for knob in chosen.options]
    info = known(chosen.id)
    found: list[dict[str, Any]] = [
        {name: getattr(one, name) for name in ("name", "title", "summary", "prepared_by")}
        | {
            "not_offered": one.not_offered(info),
            "knobs": [_declared(knob, knob.default) for knob in one.knobs],
            "published": [
                {"name": each.name, "source": each.source, "knobs": dict(each.knobs), "options": dict(each.options)}
                for each in offered(one, chosen.options)
            ],
        }
        for one in applying_to(chosen.family, chosen.options, chosen.mel_flow)
    ]
    voices = [
        {"id": one.id, "title": one.title, "transcript": one.transcript} for one in catalogue.voices(chosen.id, folder)
    ]
    place = Path(folder) if folder else chosen.folder
    data: dict[str, object] = {
        **{name: getattr(chosen, name) for name in ("id", "title", "family", "summary", "licence")},
        "available": chosen.available_in(place),
        "folder": str(place),
        "variants": list(chosen.architectures),
        "files": _files(chosen),
        "install": [] if chosen.bundled else _to_install(chosen),
        "options": options,
        "voices": voices,
        "techniques": found,
    }
    head = [
        f"{chosen.title} ({chosen.id}, {chosen.family}): {chosen.summary}",
        f"Licence: {chosen.licence}",
        f"Files: {place} ({'there' if data['available'] else 'not there'})",
        *(f"Architectures (--variant): {', '.join(chosen.architectures)}" for _ in chosen.architectures[:1]),
        *([] if chosen.bundled else _to_install(chosen)),
    ]
    text = [
        head,
        table([_row("option", f"--{one['name']}".replace("_", "-"), one) for one in options]),
        table([{"voice": one["id"], "description": one["title"]} for one in voices]) or ["No voice is there yet."],
        table([{"technique": one["name"], "description": one["not_offered"] or one["summary"]} for one in found]),
        *(table([_row(one["name"], f":{knob['name']}", knob) for knob in one["knobs"]]) for one in found),
        table([_published(one["name"], each) for one in found for each in one["published"]]),
    ]
    if techniques_only:
        data, text = {"id": chosen.id, "techniques": found}, text[3:]
    return Result(data, "\n\n".join("\n".join(block) for block in text if block))


def _published(technique: str, one: Mapping[str, Any]) -> dict[str, object]:
    knobs, options = (
        " ".join(f"{name}={plain(value)}" for name, value in one[what].items() if value != "")
        for what in ("knobs", "options")
    )
    head = {"as published": f"{technique} --as {one['name']}", "source": one["source"]}
    return {**head, "knobs": knobs, "options": options}


def _declared(knob: Knob, default: object) -> dict[str, object]:
    """A knob as JSON values: its default for a model, and its range."""
    found: dict[str, object] = {"name": knob.name, "title": knob.label, "default": default, "meaning": knob.meaning}
    match knob:
        case Number():
            ends = {"minimum": knob.minimum, "maximum": knob.maximum}
            found |= {"whole": knob.whole, **{name: end for name, end in ends.items() if math.isfinite(end)}}
            if knob.lowest:
                found["minimum_means"] = knob.lowest
        case Choice():
            found["values"] = list(knob.values)
        case Switch():
            found["values"] = [True, False]
    return found


def _row(kind: str, name: str, knob: Mapping[str, Any]) -> dict[str, object]:
    if "values" in knob:
        takes = ", ".join(plain(one) for one in knob["values"])
    elif "whole" in knob:
        takes = " to ".join(f"{knob[end]:g}" if end in knob else "any" for end in ("minimum", "maximum"))
    else:
        takes = "text"
    default = plain(knob["default"])
    if "minimum_means" in knob and knob["default"] == knob["minimum"]:
        default = f"{default} ({knob['minimum_means']})"
    return {kind: name, "default": default, "takes": takes, "meaning": f"{knob['title']}: {knob['meaning']}"}


def _files(chosen: Model) -> list[str]:
    """Files of its release, by their names in its folder."""
    return [one.saved_as for one in chosen.release.files] if chosen.release else []


def _to_install(chosen: Model) -> list[str]:
    files = _files(chosen)
    lines = [f"Download: paretone download {chosen.id}  ({len(files)} files: {', '.join(files)})"] if files else []
    if latents := chosen.voices.latents:
        lines.append(f"Voices: put name.wav and name{latents} into {chosen.folder / catalogue.VOICES}.")
    return lines


def _availability(one: Model) -> str:
    if one.available:
        return "yes"
    return f"download with: paretone download {one.id}" if one.release else f"put its files into {one.folder}"
