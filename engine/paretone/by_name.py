"""Look-up by names that people type, with suggestions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from paretone.errors import SettingError
from paretone.reading import shown

Thing = TypeVar("Thing")
_ALIKE = 0.6
"""Minimum similarity, from 0 to 1, of a suggestion."""


def by_name(name: str, known: Mapping[str, Thing], one: str, several: str) -> Thing:
    """Entry ``name`` of ``known``. Raises :class:`SettingError` with a suggestion or a list of ``several``."""
    if name not in known:
        raise SettingError(f"There is no {one} named {shown(name)}; {meant(name, known, f'known {several}:')}")
    return known[name]


def meant(word: str, known: Iterable[str], listed: str) -> str:
    """End of a sentence that refuses ``word``: a similar name or, after ``listed``, all names."""
    known = list(known)
    name = nearest(word, known)
    return f"did you mean {name!r}?" if name else f"{listed} {', '.join(known) or 'none'}."


def nearest(word: str, known: Iterable[str], alike: float = _ALIKE) -> str:
    """The only name in ``known`` that contains ``word``, as Fun-CosyVoice3-0.5B does CosyVoice3; otherwise the most
    similar one with a similarity of at least ``alike``, or ``""``."""
    word, known = str(word), list(known)
    holding = [one for one in known if len(word) > 3 and word.lower() in one.lower()]
    if len(holding) == 1:
        return holding[0]
    return next(iter(difflib.get_close_matches(word, sorted(known), 1, alike)), "")
