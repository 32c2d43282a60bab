"""The voices that ship. Torch-free.

Their folder has an index, ``voices.json``: the title of each voice in the order in which they are offered, with the
factors on pitch and formants that make it of the speaker's own. Every voice is a recording, ``NAME.wav``, and
``NAME.json`` with its text and the phones with their times, as the bundled models read them.
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

PLACE = ("voices", "natural")
"""Their resource folder."""
INDEX = "voices.json"


@dataclass(frozen=True)
class Origin:
    """How the speaker, hibari-tts, came by a voice."""

    pitch: float
    formant: float
    """Factors on the speaker's own."""


def shipped_voices() -> tuple[Voice, ...]:
    """All of them, the usual one first."""
    folder = resource(*PLACE)
    return tuple(read_voice(folder, one, about["title"]) for one, about in _index(folder)["voices"].items())


def shipped_names() -> tuple[str, ...]:
    """The ids of :func:`shipped_voices`."""
    return tuple(_index(resource(*PLACE))["voices"])


def origin_of(voice: Voice) -> Origin | None:
    """How ``voice`` came to be, if it is one that ships."""
    folder = Path(voice.audio).parent
    if folder != resource(*PLACE):
        return None
    about = _index(folder)["voices"][voice.id]
    return Origin(about["pitch"], about["formant"])


def read_voice(folder: Path, name: str, title: str = "") -> Voice:
    """The voice in ``folder`` called ``name``: ``name.wav``, and ``name.json`` with its text and phones."""
    data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    phones = tuple((phone, float(start), float(end)) for phone, start, end in data["phones"])
    return Voice(name, title or name, str(folder / f"{name}.wav"), data["text"], phones)


@functools.cache
def _index(folder: Path) -> Mapping[str, Any]:
    index: Mapping[str, Any] = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    return index
