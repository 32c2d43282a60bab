"""What is to be said of a recording and its transcript before it is a voice. Run as a script with both, it prints that
as JSON: see :func:`engine.models.own_voices.examine`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from engine.audio.prompt import is_cut
from engine.audio.recording import read_recording
from engine.errors import AudioError, PlainError
from engine.front_end import transcripts
from engine.models.own_voices import Examined


def examined(recording: str | Path, transcript: str) -> Examined:
    """Hold ``transcript`` against a recording; where both are too long, against its beginning."""
    name = Path(recording).name
    try:
        read = read_recording(recording)
        heard = transcripts.hear(read.samples, read.sample_rate, transcript)
        doubts, notes = transcripts.doubts(heard, name), read.notes
        if doubts and heard.lively and is_cut(read):
            try:
                cut, said = transcripts.fitted(read, transcript, name)
                heard = transcripts.hear(cut.samples, cut.sample_rate, said)
                doubts, notes = transcripts.doubts(heard, name), cut.notes
            except AudioError as error:  # Of models that take no more; others may take the whole.
                doubts = (str(error),)
    except PlainError as error:
        return Examined(problem=str(error))
    if heard.foreign and heard.lively:  # That is no reason to doubt it.
        return Examined(read.seconds, "", (), (*notes, *doubts))
    unchecked = transcripts.unchecked() if heard.expected is not None else ""
    return Examined(read.seconds, "", doubts, (*notes, unchecked) if unchecked else notes)


if __name__ == "__main__":
    print(json.dumps(asdict(examined(*sys.argv[1:]))))
