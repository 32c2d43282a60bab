"""Bundled voices, and the user's recordings. Torch-free.

The folder of bundled voices has an index, ``voices.json``: the title of each voice, in display order, with the factors
on pitch and formants that derive it from the speaker's own. Each voice is a recording, ``NAME.wav``, and ``NAME.json``
with its text and timed phones, as the bundled models read them.

The id of a user's recording is ``own:me.wav:3f2a9c0d12345678``, with the beginning of the file's SHA-256. Profiles,
reports and tables thus identify the recording without revealing folders of the machine. Its path is
:attr:`paretone.models.base.Voice.audio`, which is not shared.

Run as a script, this file checks a recording and its transcript before they become a voice, and prints the result as
JSON: reading texts needs torch, and pocketsphinx holds the interpreter's lock while it listens.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paretone.audio.recording import Recording, read_recording
from paretone.errors import AudioError, PlainError
from paretone.models.base import Voice
from paretone.observer import Check, stoppable
from paretone.own_process import said_by
from paretone.paths import resource
from paretone.reading import read_json, readable, require_regular, until_changed

PLACE = ("voices", "natural")
"""Resource folder of the bundled voices."""
INDEX = "voices.json"


@dataclass(frozen=True)
class Origin:
    """How a voice derives from the speaker, hibari-tts."""

    pitch: float
    formant: float
    """Factors on the speaker's own pitch and formants."""


def shipped_voices() -> tuple[Voice, ...]:
    """All bundled voices, the default one first."""
    return voices_in(resource(*PLACE))


def voices_in(folder: Path) -> tuple[Voice, ...]:
    """All voices of a folder with an index. Raises :class:`AudioError`."""
    return tuple(read_voice(folder, one, about["title"]) for one, about in _index(folder)["voices"].items())


def shipped_names() -> tuple[str, ...]:
    return tuple(_index(resource(*PLACE))["voices"])


def origin_of(voice: Voice) -> Origin | None:
    """Origin of ``voice``, if its recording is a bundled one under any path or name, or in the index of its folder."""
    for folder in (resource(*PLACE), Path(voice.audio).parent):
        with suppress(AudioError, KeyError, TypeError):  # It has no such index.
            for name, about in _index(folder)["voices"].items():
                with suppress(OSError):  # There is no such file.
                    if (folder / f"{name}.wav").samefile(voice.audio):
                        return Origin(about["pitch"], about["formant"])
    return None


def read_voice(folder: Path, name: str, title: str = "") -> Voice:
    """The voice ``name.wav`` in ``folder``, with its text and phones from ``name.json``. Raises :class:`AudioError`."""
    path = folder / f"{name}.json"
    with readable(AudioError, f"The voice {path} cannot be read", "install Paretone again"):
        data = read_json(path)
        phones = tuple((str(phone), float(start), float(end)) for phone, start, end in data["phones"])
        if not all(map(math.isfinite, (time for _, *times in phones for time in times))):
            raise ValueError("a phone has no time")
        return Voice(name, title or name, str(folder / f"{name}.wav"), str(data["text"]), phones)


@functools.cache
def _index(folder: Path) -> Mapping[str, Any]:
    path = folder / INDEX
    with readable(AudioError, f"The voices in {path} cannot be read", "install Paretone again"):
        return read_json(path)


_titles: dict[str, str] = {}
"""Titles of the user's recordings, by id."""
_PREFIX = "own:"


def own_voice(recording: str | Path, transcript: str = "") -> Voice:
    """The voice of a recording, read once for its fingerprint; if it cannot be read, the id has only its name."""
    path = Path(recording)
    return Voice(_id(path), path.stem, str(recording), transcript)


def is_own(voice: str) -> bool:
    return voice.startswith(_PREFIX)


def known_as(voices: Iterable[Voice]) -> None:
    """Show the user's recordings by the titles of ``voices``, replacing earlier titles."""
    global _titles
    _titles = {one.id: one.title for one in voices}  # Replaced in one assignment, because the engine's thread reads it.


def shown_name(voice: str) -> str:
    """Display name of the voice with this id: the title of the user's recording if known, else its file name."""
    if title := _titles.get(voice):
        return title
    return re.sub(":[0-9a-f]{16}$", "", without_folder(voice).removeprefix(_PREFIX)) if is_own(voice) else voice


def without_folder(voice: str) -> str:
    """Convert the id of a voice to the present form; earlier ids end with the path of the recording."""
    path = voice.removeprefix(_PREFIX)
    if not is_own(voice) or not set("/\\") & set(path):
        return voice
    if Path(path).is_file():
        return _id(Path(path))
    return _PREFIX + re.split(r"[/\\]", path)[-1]


def with_folder(voice: Voice) -> str:
    """The id in the earlier form, with the path: inverse of :func:`without_folder`."""
    return f"{_PREFIX}{voice.audio}" if is_own(voice.id) else voice.id


def _id(path: Path) -> str:
    try:
        require_regular(path)
        return f"{_PREFIX}{path.name}:{_fingerprint(path)}"
    except OSError:
        return f"{_PREFIX}{path.name}"


@until_changed(8192)  # Lists of thousands of recordings are read often.
def _fingerprint(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


@dataclass(frozen=True)
class Examined:
    seconds: float = 0.0
    problem: str = ""
    """Why the recording cannot become a voice, as a sentence."""
    doubts: tuple[str, ...] = ()
    """Why it may not say its transcript, as sentences."""
    notes: tuple[str, ...] = ()
    """Remarks on the recording, and on unchecked properties, as sentences."""


def examine(
    recording: str | Path, transcript: str = "", shortened: bool = True, check: Check = lambda: None
) -> Examined:
    """Run :func:`examined` in a process, which ``check`` may stop by raising. Without a transcript, only read the
    recording."""
    try:
        read = read_recording(recording)
    except AudioError as error:
        return Examined(problem=str(error))
    if not transcript.strip():
        return Examined(read.seconds, notes=(*read.notes, *_faults(read, Path(recording).name)))
    asked = str(recording), transcript, "shortened" if shortened else ""
    try:
        with stoppable(check):
            found = json.loads(said_by(__name__, *asked, longest=300.0).splitlines()[-1])
        return Examined(found["seconds"], found["problem"], tuple(found["doubts"]), tuple(found["notes"]))
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        why = "it took too long" if isinstance(error, subprocess.TimeoutExpired) else "the check failed"
        unknown = f"Whether {Path(recording).name} says its transcript could not be checked: {why}."
        return Examined(read.seconds, notes=(*read.notes, unknown))


def examined(recording: str | Path, transcript: str, shortened: bool = True) -> Examined:
    """Compare ``transcript`` with a recording, both ``shortened`` as for models that take only the beginning."""
    from paretone.audio.prompt import is_cut  # Imported here, because the window imports this file at start.
    from paretone.front_end import transcripts

    name = Path(recording).name
    try:
        read = read_recording(recording)
        seconds, faults = read.seconds, _faults(read, name)
        if shortened and is_cut(read):
            try:
                read, transcript = transcripts.fitted(read, transcript, name)
            except AudioError as error:
                return Examined(seconds, doubts=(str(error),), notes=read.notes)
        heard = transcripts.hear(read.samples, read.sample_rate, transcript)
        found, unchecked = transcripts.doubts(heard, name), transcripts.unchecked(heard, name)
    except PlainError as error:
        return Examined(problem=str(error))
    notes = (*read.notes, *faults) if not unchecked or (heard.foreign and found) else (*read.notes, *faults, unchecked)
    return Examined(seconds, "", found, notes)


def _faults(read: Recording, name: str) -> tuple[str, ...]:
    from paretone.checks.beforehand import faults_of_prompt
    from paretone.checks.speech import Speech

    return faults_of_prompt(Speech(read.samples, read.sample_rate), name)


if __name__ == "__main__":
    given, said, how = sys.argv[1:]
    print(json.dumps(asdict(examined(given, said, bool(how)))))
