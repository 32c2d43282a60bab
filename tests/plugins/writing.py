"""Tiny plug-ins, installed by hand: a module and its metadata."""

from collections.abc import Mapping
from pathlib import Path

DECLARED = """
from dataclasses import dataclass, replace

from paretone.errors import SettingError
from paretone.setting.knobs import Choice, Effect, Knob, Number, Switch, Text
from paretone.setting.plan import Part
from paretone.techniques.base import *

NAME = __name__.removeprefix("plugin_")
PAPER = Paper("None", "none")


def as_it_was(context, knobs, plan):
    return plan


def declared(**more):
    known = dict(name=NAME, title=f"The {NAME}", summary="Is a test.", paper=PAPER, families=("flow",), knobs=())
    return Technique(**{**known, "resolve": as_it_was, **more})


def putting(field, function="part", **arguments):
    def resolve(context, knobs, plan):
        return replace(plan, **{field: Part.of(f"{__name__}:{function}", **arguments)})

    return resolve

"""
"""What every such module begins with."""


def written(folder: Path, name: str, source: str, kind: str = "technique") -> None:
    """Install the plug-in ``name``, whose module is ``source``, into ``folder``; it brings a technique or a model."""
    (folder / f"plugin_{name}.py").write_text(source, encoding="utf-8")
    entries = {name: f"plugin_{name}:{kind.upper()}"}
    install(folder, f"plugin_{name}", f"plugin-{name}", "2.0", entries, f"paretone.{kind}s")


def install(
    folder: Path, module: str, name: str, version: str, entries: Mapping[str, str], group: str = "paretone.techniques"
) -> None:
    """The metadata of the package ``name``, with its entry points, next to its module."""
    metadata = folder / f"{module}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    listed = "".join(f"{key} = {value}\n" for key, value in entries.items())
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{listed}", encoding="utf-8")
