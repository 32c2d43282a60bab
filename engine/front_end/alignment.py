"""When each phone of a recording sounds, for a user's own voice: from its transcript.

Where pocketsphinx is installed it aligns the recording with the transcript (to about 20 ms). Without it, or when it
does not find the transcript in the recording, the mean durations of the table are stretched to the length of the
speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from engine.audio.resampling import resample
from engine.errors import AudioError
from engine.front_end.durations import DurationTable
from engine.front_end.phonemiser import PhoneText
from engine.front_end.phones import PAUSE, to_arpabet
from engine.front_end.timed_phone import TimedPhone

if TYPE_CHECKING:
    import pocketsphinx

FORCED = "pocketsphinx"
TABLE = "duration table"
ESTIMATED = (
    "When each sound of the voice's recording is spoken was only estimated, so the voice may be copied less well; to "
    "have it measured, install pocketsphinx and check that the transcript has exactly the words of the recording."
)
"""A note for the user where :data:`TABLE` was the method."""

ALIGNER_RATE = 16000
ALIGNER_FRAMES_PER_SECOND = 100
QUIET = 10 ** (-35 / 20)
"""Speech begins and ends where the level of 10 ms is this share of the loudest."""
SLOWEST, FASTEST = 3.5, 0.3
"""A recording longer or shorter by this factor than the table expects does not say what the transcript says."""


Segment = tuple[str, float, float]
"""A phone of the aligner's, or :data:`PAUSE`, with start and end in seconds."""


@dataclass(frozen=True)
class Alignment:
    """Phones of a recording, from its start to its end without gaps."""

    phones: tuple[TimedPhone, ...]
    method: str
    """``pocketsphinx`` or ``duration table``."""


class Aligner(Protocol):
    """A text front end that finds its phones in recordings."""

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """The phones of a recording (n,) at ``rate`` Hz. Raises :class:`AudioError` and
        :class:`engine.errors.TextError`."""


def align(samples: np.ndarray, rate: int, transcript: PhoneText, table: DurationTable, voice: str = "") -> Alignment:
    """Align mono ``samples`` (n,) at ``rate`` Hz. ``voice`` is the table's voice that the speaker is most like, if any.

    Raises :class:`AudioError` when the recording is silent or cannot be of this transcript.
    """
    expected = float(table.seconds(transcript.phones, voice).sum())
    start, end = checked_span(samples, rate, expected)
    words = [to_arpabet(transcript.phones[word.first : word.last]) for word in transcript.words]
    forced = _named(forced_segments(samples, rate, words), [phone for phone in transcript.phones if phone != PAUSE])
    if forced:
        return Alignment(_closed(forced, len(samples) / rate), FORCED)
    seconds = table.seconds(transcript.phones, voice) * (end - start) / expected
    ends = (start + np.cumsum(seconds)).tolist()
    stretched = list(zip(transcript.phones, [start, *ends[:-1]], ends, strict=True))
    return Alignment(_closed(stretched, len(samples) / rate), TABLE)


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
    """Segments of a recording as pocketsphinx finds them, for ``words`` in its phones with blanks in between; empty if
    it is missing or does not find them."""
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
        return [_segment(phone) for word in decoder.get_alignment() for phone in word]
    except RuntimeError:
        return []


def _segment(found: Any) -> Segment:
    silent = found.name == "SIL" or found.name.startswith("+")
    start, end = (place / ALIGNER_FRAMES_PER_SECOND for place in (found.start, found.start + found.duration))
    return PAUSE if silent else found.name, start, end


def _run(decoder: pocketsphinx.Decoder, raw: bytes) -> None:
    decoder.start_utt()
    decoder.process_raw(raw, full_utt=True)
    decoder.end_utt()


def _named(segments: Sequence[Segment], phones: Sequence[str]) -> list[TimedPhone]:
    """Segments under our own phone names (pocketsphinx has no schwa); empty when they are not these phones."""
    left = list(phones)[::-1]
    named: list[TimedPhone] = []
    for name, start, end in segments:
        if name != PAUSE and not left:
            return []
        named.append((PAUSE if name == PAUSE else left.pop(), start, end))
    return [] if left else named


def _closed(phones: Sequence[TimedPhone], length: float) -> tuple[TimedPhone, ...]:
    """``phones`` with pauses before the first and after the last, so that they cover ``length`` seconds."""
    first, last = phones[0][1], phones[-1][2]
    before = [(PAUSE, 0.0, first)] if first > 0 else []
    after = [(PAUSE, last, length)] if last < length else []
    return (*before, *phones, *after)
