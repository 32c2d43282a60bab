"""Finding things by the names that people give, and what they may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from paretone.errors import SettingError
from paretone.reading import shown

Thing = TypeVar("Thing")
_ALIKE = 0.6
"""Least likeness of a name to what was typed, of 1."""


def by_name(name: str, known: Mapping[str, Thing], one: str, several: str) -> Thing:
    """The entry of ``known`` under ``name``. Raises :class:`SettingError` that suggests one or lists them; ``one`` and
    ``several`` are their nouns."""
    if name not in known:
        raise SettingError(f"There is no {one} named {shown(name)}; {meant(name, known, f'known {several}:')}")
    return known[name]


def meant(word: str, known: Iterable[str], listed: str) -> str:
    """End of the sentence that refuses ``word``: the name that is like it or, after ``listed``, all names."""
    known = list(known)
    name = nearest(word, known)
    return f"did you mean {name!r}?" if name else f"{listed} {', '.join(known) or 'none'}."


def nearest(word: str, known: Iterable[str], alike: float = _ALIKE) -> str:
    """The name of ``known`` that ``word`` is ``alike`` or more, or ``""``."""
    return next(iter(difflib.get_close_matches(word, sorted(known), 1, alike)), "")
