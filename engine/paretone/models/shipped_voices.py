"""The voices that ship. Torch-free.

Their folder has an index, ``voices.json``: the title of each voice in the order in which they are offered, with the
factors on pitch and formants that make it of the speaker's own. Every voice is a recording, ``NAME.wav``, and
``NAME.json`` with its text and the phones with their times, as the bundled models read them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretone.errors import AudioError
from paretone.models.base import Voice
from paretone.paths import resource
from paretone.reading import first_line, read_json

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
    """How ``voice`` came to be, if its recording is one of those that ship, by whatever path and name it is given."""
    folder = resource(*PLACE)
    for name, about in _index(folder)["voices"].items():
        with suppress(OSError):  # There is no such file.
            if (folder / f"{name}.wav").samefile(voice.audio):
                return Origin(about["pitch"], about["formant"])
    return None


def read_voice(folder: Path, name: str, title: str = "") -> Voice:
    """The voice in ``folder`` called ``name``: ``name.wav``, and ``name.json`` with its text and phones. Raises
    :class:`AudioError` if that cannot be read."""
    path = folder / f"{name}.json"
    try:
        data = read_json(path)
        phones = tuple((str(phone), float(start), float(end)) for phone, start, end in data["phones"])
        if not all(map(math.isfinite, (time for _, *times in phones for time in times))):
            raise ValueError("a phone has no time")
        return Voice(name, title or name, str(folder / f"{name}.wav"), str(data["text"]), phones)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AudioError(f"The voice {path} cannot be read ({first_line(error)}); install Paretone again.") from error


@functools.cache
def _index(folder: Path) -> Mapping[str, Any]:
    path = folder / INDEX
    try:
        index: Mapping[str, Any] = read_json(path)
    except (OSError, ValueError) as error:
        raise AudioError(
            f"The voices in {path} cannot be read ({first_line(error)}); install Paretone again."
        ) from error
    return index
