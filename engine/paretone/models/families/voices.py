"""Common part of voice readers. Torch-free."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from paretone.audio.recording import read_recording
from paretone.errors import AudioError, TextError
from paretone.front_end import transcripts
from paretone.models.base import Voice

Made = TypeVar("Made")


class Remembered(Generic[Made]):
    """Cache of the last result: users change the text far more often than the voice."""

    def __init__(self, same: Callable[[Any, Any], bool] = operator.eq) -> None:
        """``same``: whether two keys ask for the same."""
        self._same = same
        self._last: tuple[object, Made] | None = None

    def of(self, key: object, make: Callable[[], Made]) -> Made:
        """Result for ``key``, made by ``make`` if it is not the last one."""
        if self._last is None or not self._same(self._last[0], key):
            self._last = key, make()
        return self._last[1]


def changed(recording: str | Path) -> int:
    """When the file was written, in nanoseconds, 0 if there is none: a recording that was changed is read again."""
    path = Path(recording)
    return path.stat().st_mtime_ns if path.is_file() else 0


def transcript_notes(voice: Voice, mismatch: str = "") -> tuple[str, ...]:
    """Why the recording of a voice may not say its transcript, in sentences: ``mismatch``, which the model finds and
    knows the effect of, else :func:`paretone.front_end.transcripts.remarks`."""
    if mismatch:
        return (mismatch,)
    heard = _heard(voice.audio, changed(voice.audio), " ".join(voice.transcript.split()))
    return transcripts.remarks(heard, Path(voice.audio).name) if heard is not None else ()


@lru_cache(maxsize=16)
def _heard(audio: str, written: int, transcript: str) -> transcripts.Hearing | None:
    """``None`` for a recording that cannot be read, which others say."""
    try:
        recording = read_recording(audio)
    except AudioError:
        return None
    return transcripts.hear(recording.samples, recording.sample_rate, transcript)


def transcript_of(voice: Voice, advice: str = "") -> str:
    """The voice's transcript on one line. Raises :class:`TextError` with ``advice`` if it has none."""
    transcript = " ".join(voice.transcript.split())
    if not transcript:
        error = TextError(
            f"The voice {voice.title or voice.id!r} has no transcript; write down what the recording says.{advice}"
        )
        error.lacks_transcript = True
        raise error
    return transcript
