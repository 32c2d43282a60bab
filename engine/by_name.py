"""Finding things by the names that people give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from engine.errors import SettingError
from engine.reading import shown

Thing = TypeVar("Thing")


def by_name(name: str, known: Mapping[str, Thing], one: str, several: str) -> Thing:
    """The entry of ``known`` under ``name``. Raises :class:`SettingError` that lists the known ones; ``one`` and
    ``several`` are their nouns."""
    if name not in known:
        raise SettingError(f"There is no {one} named {shown(name)}; known {several}: {', '.join(known)}.")
    return known[name]
