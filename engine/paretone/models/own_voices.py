"""The user's own voices: recordings, named by file name and fingerprint in all that is kept and shared. Torch-free.

The id of such a voice is ``own:me.wav:3f2a9c0d12345678``, with the beginning of the file's SHA-256. So a profile, a
report or a table says which recording spoke, and nothing of the folders of the machine where it was made. Where the
recording lies is in :attr:`paretone.models.base.Voice.audio`, which is not shared.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from paretone.models.base import Voice
from paretone.reading import require_regular

_titles: dict[str, str] = {}
"""Titles of the user's recordings, by id."""
_PREFIX = "own:"
_DIGITS = 16
_FINGERPRINT = re.compile(rf":[0-9a-f]{{{_DIGITS}}}$")


def own_voice(recording: str | Path, transcript: str = "") -> Voice:
    """The voice of a recording. It is read once, for its fingerprint; one that cannot be read has its name alone."""
    path = Path(recording)
    return Voice(_id(path), path.stem, str(recording), transcript)


def is_own(voice: str) -> bool:
    """Whether a voice is the user's own, by its id."""
    return voice.startswith(_PREFIX)


def known_as(voices: Iterable[Voice]) -> None:
    """Show the user's recordings by the titles of ``voices``, in place of earlier ones."""
    global _titles
    _titles = {one.id: one.title for one in voices}  # In place of the earlier ones at once: the engine's thread reads.


def shown_name(voice: str) -> str:
    """A voice's name for people, by its id: the title of the user's recording if known, or else its file name."""
    if title := _titles.get(voice):
        return title
    return _FINGERPRINT.sub("", without_folder(voice).removeprefix(_PREFIX)) if is_own(voice) else voice


def without_folder(voice: str) -> str:
    """The id of a voice as it is now; what was kept earlier ends with the path of the recording."""
    path = voice.removeprefix(_PREFIX)
    if not is_own(voice) or not set("/\\") & set(path):
        return voice
    if Path(path).is_file():
        return _id(Path(path))
    return _PREFIX + re.split(r"[/\\]", path)[-1]


def with_folder(voice: Voice) -> str:
    """The id of earlier versions, with the path: the inverse of :func:`without_folder`."""
    return f"{_PREFIX}{voice.audio}" if is_own(voice.id) else voice.id


def _id(path: Path) -> str:
    try:
        seen = require_regular(path)
        return f"{_PREFIX}{path.name}:{_fingerprint(path, seen.st_size, seen.st_mtime_ns)}"
    except OSError:
        return f"{_PREFIX}{path.name}"


@lru_cache(maxsize=8192)
def _fingerprint(path: Path, size: int, changed: int) -> str:
    """Cached per file version: lists of thousands of recordings are read often."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
