"""A recording and its transcript checked before they become the user's own voice. Torch-free to import.

Run as a script, this file checks one and prints what it found as JSON: reading texts needs torch, and pocketsphinx
holds the interpreter's lock while it listens.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from paretone.audio.recording import read_recording
from paretone.errors import AudioError, PlainError
from paretone.own_process import command

LONGEST_EXAMINATION = 300.0
"""Seconds after which the check is given up."""
_PATIENCE = 0.1
"""Seconds between calls of ``given_up``."""
_SHORTENED = "shortened"


@dataclass(frozen=True)
class Examined:
    """Result of the check of a recording."""

    seconds: float = 0.0
    problem: str = ""
    """Why it cannot be one, as a sentence."""
    doubts: tuple[str, ...] = ()
    """Why it may not say its transcript, as sentences."""
    notes: tuple[str, ...] = ()
    """Remarks on the recording, and what could not be checked, as sentences."""


def examine(
    recording: str | Path,
    transcript: str = "",
    shortened: bool = True,
    given_up: Callable[[], bool] = lambda: False,
) -> Examined:
    """:func:`examined`, in a separate process that ends once ``given_up`` says so. Without a transcript the recording
    is read, and no more."""
    try:
        read = read_recording(recording)
    except AudioError as error:
        return Examined(problem=str(error))
    if not transcript.strip():
        return Examined(read.seconds, notes=read.notes)
    asked = str(recording), transcript, _SHORTENED if shortened else ""
    try:
        found = json.loads(_output(command(__name__, *asked), given_up).splitlines()[-1])
        return Examined(found["seconds"], found["problem"], tuple(found["doubts"]), tuple(found["notes"]))
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        why = "it took too long" if isinstance(error, subprocess.TimeoutExpired) else "the check failed"
        unknown = f"Whether {Path(recording).name} says its transcript could not be checked: {why}."
        return Examined(read.seconds, notes=(*read.notes, unknown))


def _output(arguments: Sequence[str], given_up: Callable[[], bool]) -> bytes:
    """Output of a process, which is killed after :data:`LONGEST_EXAMINATION` or once ``given_up`` is true."""
    until = time.monotonic() + LONGEST_EXAMINATION
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        while True:
            try:
                output, _ = child.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                if given_up() or time.monotonic() > until:
                    child.kill()
                    raise
            else:
                if child.returncode:
                    raise subprocess.CalledProcessError(child.returncode, arguments)
                return output


def examined(recording: str | Path, transcript: str, shortened: bool = True) -> Examined:
    """Hold ``transcript`` against a recording, both ``shortened`` as for models that take only a beginning."""
    from paretone.audio.prompt import is_cut  # Here, because the window imports this file as it starts.
    from paretone.front_end import transcripts

    name = Path(recording).name
    try:
        read = read_recording(recording)
        seconds = read.seconds
        if shortened and is_cut(read):
            try:
                read, transcript = transcripts.fitted(read, transcript, name)
            except AudioError as error:
                return Examined(seconds, doubts=(str(error),), notes=read.notes)
        heard = transcripts.hear(read.samples, read.sample_rate, transcript)
        found, unchecked = transcripts.doubts(heard, name), transcripts.unchecked(heard, name)
    except PlainError as error:
        return Examined(problem=str(error))
    if heard.foreign and found:
        unchecked = ""
    return Examined(seconds, "", found, (*read.notes, unchecked) if unchecked else read.notes)


if __name__ == "__main__":
    given, said, how = sys.argv[1:]
    print(json.dumps(asdict(examined(given, said, bool(how)))))
