"""The voices that ship, in sets of one speaker each. Torch-free.

A set is a folder with an index, ``voices.json``: who speaks, and the title of each voice in the order in which they are
offered, with the factors on pitch and formants that make it of the speaker's own. Every voice is a recording,
``NAME.wav``, and ``NAME.json`` with its text and the phones with their times, as the models that learnt from this
speaker read them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.models.base import Voice
from engine.paths import resource

ARCTIC, NATURAL = "arctic", "natural"
"""The sets."""
SETS = "voices"
"""The resource folder that holds them."""
INDEX = "voices.json"
FLITE, HIBARI = "flite", "hibari-tts"
"""The speakers."""


@dataclass(frozen=True)
class Origin:
    """Who speaks in a voice."""

    speaker: str
    pitch: float = 1.0
    formant: float = 1.0
    """Factors on the speaker's own."""


def voices_of(name: str) -> tuple[Voice, ...]:
    """The voices of a set, the usual one first."""
    folder = resource(SETS, name)
    return tuple(read_voice(folder, one, about["title"]) for one, about in _index(folder)["voices"].items())


def names_of(name: str) -> tuple[str, ...]:
    """The ids of :func:`voices_of`."""
    return tuple(_index(resource(SETS, name))["voices"])


def origin_of(voice: Voice) -> Origin | None:
    """Who speaks in ``voice``, if it is one that ships."""
    folder = Path(voice.audio).parent
    for one in (ARCTIC, NATURAL):
        if folder == resource(SETS, one):
            index = _index(folder)
            about = index["voices"][voice.id]
            return Origin(index["speaker"], about.get("pitch", 1.0), about.get("formant", 1.0))
    return None


def read_voice(folder: Path, name: str, title: str = "") -> Voice:
    """A voice of a set: ``name.wav``, and ``name.json`` with its text and phones."""
    data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    phones = tuple((phone, float(start), float(end)) for phone, start, end in data["phones"])
    return Voice(name, title or name, str(folder / f"{name}.wav"), data["text"], phones)


@functools.cache
def _index(folder: Path) -> Mapping[str, Any]:
    index: Mapping[str, Any] = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    return index
