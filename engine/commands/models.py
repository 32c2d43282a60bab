"""``paretone models``: what there is."""

from __future__ import annotations

import argparse

from engine.bench.report import table
from engine.commands.result import Result
from engine.commands.session import Session
from engine.models import catalogue
from engine.models.base import Voice
from engine.models.catalogue import CatalogueEntry
from engine.models.files.releases import RELEASES
from engine.techniques import problems, techniques

NAME = "models"
SUMMARY = "List models, voices and techniques, with licences."


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--techniques", action="store_true", help="list techniques and their knobs only")


def run(options: argparse.Namespace, session: Session) -> Result:
    """List models, voices and techniques."""
    found = [
        {
            "id": one.id,
            "title": one.title,
            "family": one.family,
            "licence": one.licence,
            "available": one.available,
            "downloadable": one.id in RELEASES,
            "folder": str(one.folder),
            "summary": one.summary,
        }
        for one in catalogue.MODELS
    ]
    voices = [
        {"id": one.id, "title": one.title, "transcript": one.transcript, "models": list(models)}
        for one, models in _voices().items()
    ]
    declared = [
        {
            "name": one.name,
            "title": one.title,
            "summary": one.summary,
            "paper": one.paper.reference,
            "prepared_by": one.prepared_by,
            "knobs": [{"name": knob.name, "default": knob.default, "meaning": knob.meaning} for knob in one.knobs],
        }
        for one in techniques()
    ]
    knobs = [
        {"knob": f"{one.name}:{knob.name}", "default": knob.default, "meaning": knob.meaning}
        for one in techniques()
        for knob in one.knobs
    ]
    rows = [
        {"model": one.id, "licence": one.licence, "available": _availability(one), "description": one.summary}
        for one in catalogue.MODELS
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
    text = "\n\n".join("\n".join(block) for block in blocks)
    return Result(data, text)


def _voices() -> dict[Voice, list[str]]:
    """Every voice, and the models that can use it."""
    found: dict[Voice, list[str]] = {}
    for model in catalogue.MODELS:
        for one in catalogue.voices(model.id):
            found.setdefault(one, []).append(model.id)
    return found


def _availability(one: CatalogueEntry) -> str:
    if one.available:
        return "yes"
    return f"download with: paretone download {one.id}" if one.id in RELEASES else f"put its files into {one.folder}"
