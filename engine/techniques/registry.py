"""Registry of techniques: everything in the entry-point group ``paretone.techniques``. Torch-free.

Ours are registered in ``pyproject.toml`` in the same way as a researcher's in the package that brings them. A checkout
is its own metadata: there ours are read from its ``pyproject.toml``, so that they are found even if the installed
metadata is older. A plug-in that cannot be imported, or is not a technique, is left out and named in one sentence; all
others work.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType

from engine.errors import SettingError
from engine.models.base import LANGUAGE
from engine.own_process import packaged
from engine.reading import shown
from engine.setting.knobs import Knob
from engine.techniques.base import Technique

GROUP = "paretone.techniques"
OURS = "paretone"
"""The distribution that brings ours."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_WHERE_ELSE = (
    "The packaged program finds no plug-ins; if one brings it, install Paretone and the plug-in with pip or uv."
    if packaged()
    else "If a plug-in brings it, install the plug-in."
)


@dataclass(frozen=True)
class Registry:
    """The techniques found, and what went wrong."""

    techniques: tuple[Technique, ...]
    """In the order in which lists show them."""
    problems: tuple[str, ...]
    """A sentence for each plug-in that was left out."""


def techniques() -> tuple[Technique, ...]:
    """All techniques, in the order in which lists show them."""
    return registry().techniques


def problems() -> tuple[str, ...]:
    """A sentence for each plug-in that was left out."""
    return registry().problems


@cache
def registry() -> Registry:
    """All there is, found once; ``registry.cache_clear()`` looks again."""
    found: dict[str, Technique] = {}
    failed: list[str] = []
    for point in _points():
        loaded = _loaded(point)
        if isinstance(loaded, Technique) and loaded.name in found:
            loaded = (
                f"The plug-in {_called(point)} brings a technique named {shown(loaded.name)}, which is there already; "
                "it was left out."
            )
        if isinstance(loaded, Technique):
            found[loaded.name] = loaded
        else:
            failed.append(loaded)
    return Registry(tuple(sorted(found.values(), key=lambda one: (one.place, one.title))), tuple(failed))


def find(name: str) -> Technique | None:
    """The technique called ``name``, if there is one: what was kept may name one of another version or plug-in."""
    return next((one for one in techniques() if one.name == name), None)


def technique(name: str) -> Technique:
    """The technique called ``name``. Raises :class:`SettingError` that lists the known ones."""
    found = find(name)
    if found is None:
        known = ", ".join(one.name for one in techniques())
        why = "".join(f" {one}" for one in problems())
        raise SettingError(f"There is no technique named {shown(name)}; known techniques: {known}. {_WHERE_ELSE}{why}")
    return found


def applying_to(family: str, options: Iterable[Knob], mel_steps: int = 0) -> tuple[Technique, ...]:
    """The techniques for a model of ``family`` that has these ``options``; ``mel_steps`` are those of the flow after a
    language model, if there is one."""
    names = {knob.name for knob in options}
    missing = family == LANGUAGE and not mel_steps
    return tuple(
        one
        for one in techniques()
        if family in one.families and names.issuperset(one.options) and not (missing and one.needs_mel_flow)
    )


def lacking(family: str, device: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """By name, why techniques are not offered for models of ``family``: on any device, or on a ``device`` that cannot
    do what they need (see :func:`engine.device.lacking`)."""
    reasons = {one.name: one.lacking(family) or device.get(one.needs) for one in techniques()}
    return {name: reason for name, reason in reasons.items() if reason}


def _points() -> Iterator[EntryPoint]:
    """Ours first, so that no plug-in takes their names."""
    installed = sorted(entry_points(group=GROUP), key=lambda one: one.dist is None or one.dist.name != OURS)
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    if not project.is_file():
        yield from installed
        return
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"][GROUP]
    yield from (EntryPoint(name, value, GROUP) for name, value in declared.items())
    yield from (one for one in installed if one.dist is None or one.dist.name != OURS)


def _loaded(point: EntryPoint) -> Technique | str:
    """The technique that ``point`` names, or a sentence that says what is wrong with it."""
    try:
        found = point.load()
    except Exception as error:  # Whatever a plug-in raises must not take the others down.
        return f"The plug-in {_called(point)} was left out: it cannot be imported ({type(error).__name__}: {error})."
    if not isinstance(found, Technique) or not _NAME.fullmatch(found.name):
        return (
            f"The plug-in {_called(point)} was left out: {point.value} is not a Technique with a name of lower-case "
            "letters, digits and underscores."
        )
    return found


def _called(point: EntryPoint) -> str:
    """The plug-in, with the package that brings it."""
    return f"{shown(point.name)} of {point.dist.name} {point.dist.version}" if point.dist else repr(point.name)
