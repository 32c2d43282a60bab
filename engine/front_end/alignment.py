"""When each phone of a recording sounds, for a user's own voice: from its transcript.

Where pocketsphinx is installed it aligns the recording with the transcript (to about 20 ms). Without it, or when it
does not find the transcript in the recording, mean lengths are stretched to the length of the speech
(:mod:`engine.front_end.natural.aligning`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from engine.audio.resampling import resample
from engine.errors import AudioError
from engine.front_end.timed_phone import TimedPhone

if TYPE_CHECKING:
    import pocketsphinx

FORCED = "pocketsphinx"
MEAN_LENGTHS = "mean lengths"
ESTIMATED = (
    "When each sound of the voice's recording is spoken was only estimated, so the voice may be copied less well; to "
    "have it measured, install pocketsphinx and check that the transcript has exactly the words of the recording."
)
"""A note for the user where :data:`MEAN_LENGTHS` was the method."""

ALIGNER_RATE = 16000
ALIGNER_FRAMES_PER_SECOND = 100
QUIET = 10 ** (-35 / 20)
"""Speech begins and ends where the level of 10 ms is this share of the loudest."""
SLOWEST, FASTEST = 3.5, 0.3
"""A recording longer or shorter by this factor than expected does not say what the transcript says."""


Segment = tuple[str, float, float]
"""A phone of the aligner's with start and end in seconds."""


@dataclass(frozen=True)
class Alignment:
    """Phones of a recording, from its start to its end without gaps."""

    phones: tuple[TimedPhone, ...]
    method: str
    """``pocketsphinx`` or ``mean lengths``."""


class Aligner(Protocol):
    """A text front end that finds its phones in recordings."""

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """The phones of a recording (n,) at ``rate`` Hz. Raises :class:`AudioError` and
        :class:`engine.errors.TextError`."""


def speech_span(samples: np.ndarray, rate: int) -> tuple[float, float]:
    """Start and end of speech in seconds, judged by level. Raises :class:`AudioError` for silence."""
    window = max(1, rate // 100)
    count = len(samples) // window
    levels = np.sqrt(np.mean(np.reshape(samples[: count * window], (count, window)).astype(np.float64) ** 2, axis=1))
    if not count or not levels.max() > 0:
        raise AudioError("The recording is silent or empty; use one with speech in it.")
    loud = np.flatnonzero(levels >= QUIET * levels.max())
    return float(loud[0] * window / rate), float((loud[-1] + 1) * window / rate)


def checked_span(samples: np.ndarray, rate: int, expected: float) -> tuple[float, float]:
    """:func:`speech_span` of a recording whose transcript should take ``expected`` seconds. Raises :class:`AudioError`
    for silence, and when it cannot be of this transcript."""
    start, end = speech_span(samples, rate)
    if not FASTEST * expected <= end - start <= SLOWEST * expected:
        raise AudioError(
            f"The recording has {end - start:.1f} s of speech, but its transcript would take about {expected:.1f} s; "
            "check that the transcript has exactly the words of the recording."
        )
    return start, end


def forced_segments(samples: np.ndarray, rate: int, words: Sequence[str]) -> list[Segment]:
    """Segments of a recording in which pocketsphinx finds ``words``, given in its phones with blanks in between; empty
    if it is missing or does not find them."""
    try:
        import pocketsphinx
    except ImportError:
        return []
    decoder = pocketsphinx.Decoder(samprate=ALIGNER_RATE, loglevel="FATAL", lm=None)
    names = [f"word{number}" for number in range(len(words))]
    for name, word in zip(names, words, strict=True):
        decoder.add_word(name, word, name == names[-1])
    raw = (resample(samples, rate, ALIGNER_RATE).clip(-1, 1) * 32767).astype(np.int16).tobytes()
    decoder.set_align_text(" ".join(names))
    try:
        _run(decoder, raw)
        if decoder.hyp() is None:
            return []
        decoder.set_alignment()
        _run(decoder, raw)
        return [_segment(phone) for word in decoder.get_alignment() for phone in word if not _is_silence(phone)]
    except RuntimeError:
        return []


def _segment(found: Any) -> Segment:
    start, end = (place / ALIGNER_FRAMES_PER_SECOND for place in (found.start, found.start + found.duration))
    return found.name, start, end


def _is_silence(found: Any) -> bool:
    return found.name == "SIL" or found.name.startswith("+")


def _run(decoder: pocketsphinx.Decoder, raw: bytes) -> None:
    decoder.start_utt()
    decoder.process_raw(raw, full_utt=True)
    decoder.end_utt()
