"""Time each phone of a user's recording, from its transcript.

If pocketsphinx is installed, it aligns the recording with the transcript (to about 20 ms). Without it, or if it does
not find the transcript, mean lengths are stretched to the length of the speech.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from paretone.audio.resampling import resample
from paretone.errors import AudioError
from paretone.extras import how_to_add
from paretone.front_end import forced_alignment
from paretone.front_end.forced_alignment import FoundWord, Segment
from paretone.front_end.phones import EDGE, TimedPhone, words
from paretone.front_end.written_forms import table

FORCED = "pocketsphinx"
MEAN_LENGTHS = "mean lengths"

QUIET = 10 ** (-35 / 20)
"""Speech begins and ends where the level of 10 ms reaches this share of the loudest."""
FAINT = 0.05
"""Peak below which a recording is amplified for the aligner."""
SLOWEST, FASTEST = 3.5, 0.3
"""A recording longer or shorter than expected by these factors does not say its transcript."""


@dataclass(frozen=True)
class Alignment:
    """Phones of a recording, from start to end without gaps."""

    phones: tuple[TimedPhone, ...]
    method: str
    """``pocketsphinx`` or ``mean lengths``."""
    words: tuple[FoundWord, ...] = ()
    """The words of the transcript, if pocketsphinx found them."""


def alignment_notes(found: Alignment) -> tuple[str, ...]:
    """Notes for the user on an alignment."""
    if found.method != MEAN_LENGTHS:
        return ()
    # If words are missing, the doubts about the transcript say so.
    more = "" if forced_alignment.installed() else f"; to have it measured, {how_to_add('judge')}"
    return (
        "When each sound of the voice's recording is spoken was only estimated, so the voice may be copied less well"
        f"{more}.",
    )


class Aligner(Protocol):
    """Text front end that aligns recordings."""

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """Align a recording (n,) at ``rate`` Hz. Raises :class:`AudioError` and :class:`TextError`."""


def checked_span(samples: np.ndarray, rate: int, expected: float) -> tuple[float, float]:
    """Start and end of the speech in seconds, judged by level, of a recording whose transcript should take ``expected``
    seconds. Raises :class:`AudioError` for silence, and if the durations do not match."""
    window = max(1, rate // 100)
    frames = np.reshape(samples[: len(samples) // window * window], (-1, window)).astype(np.float64)
    levels = np.sqrt(np.mean(frames**2, axis=1))
    if not levels.max(initial=0.0) > 0:
        raise AudioError("The recording is silent or empty; use one with speech in it.")
    loud = np.flatnonzero(levels >= QUIET * levels.max())
    start, end = float(loud[0] * window / rate), float((loud[-1] + 1) * window / rate)
    if not FASTEST * expected <= end - start <= SLOWEST * expected:
        raise AudioError(
            f"{end - start:.1f} s of the recording's speech are used, but its transcript would take about "
            f"{expected:.1f} s; check that the transcript has exactly the words of the recording."
        )
    return start, end


def forced_words(samples: np.ndarray, rate: int, words: Sequence[str]) -> tuple[FoundWord, ...]:
    """:func:`paretone.front_end.forced_alignment.found_words` for float samples (n,) at any rate. Quiet samples are
    amplified, because the aligner takes 16 bits."""
    loudest = float(np.abs(samples).max(initial=0.0))
    gain = np.float32(1.0 if not 0 < loudest < FAINT else 0.5 / loudest)
    heard = resample(samples * gain, rate, forced_alignment.RATE)
    return forced_alignment.found_words((heard.clip(-1, 1) * 32767).astype(np.int16).tobytes(), words)


# Training speech has time for each blank between words; in recordings words run together, so blanks take a little from
# the neighbouring sounds.
BLANK_SECONDS = 0.025
ALIGNER_PHONES = table("pocketsphinx")
"""Phones in pocketsphinx's notation."""


def align_phones(samples: np.ndarray, rate: int, spoken: Sequence[TimedPhone]) -> Alignment:
    """Align mono ``samples`` (n,) at ``rate`` Hz with the phones of the transcript, of mean length, without silence.
    Raises :class:`AudioError` if the recording is silent or its duration does not match."""
    seconds = np.array([end - start for _, start, end in spoken])
    start, end = checked_span(samples, rate, float(seconds.sum()))
    found = forced_words(samples, rate, spelled_words(spoken))
    times = _placed(spoken, [phone for word in found for phone in word.phones])
    if times is None:
        edges = start + np.cumsum([0.0, *seconds]) * (end - start) / seconds.sum()
        return Alignment(_closed(spoken, edges.tolist(), len(samples) / rate), MEAN_LENGTHS)
    return Alignment(_closed(spoken, times, len(samples) / rate), FORCED, found)


def spelled_words(phones: Sequence[TimedPhone]) -> list[str]:
    """The words of ``phones`` in pocketsphinx's notation."""
    return [aligner_phones("".join(phones[place][0] for place in word)) for word in words(phones)]


def aligner_phones(phonemes: str) -> str:
    """``phonemes`` in pocketsphinx's notation, without stress marks, punctuation and blanks."""
    return " ".join(ALIGNER_PHONES[one] for one in phonemes if one in ALIGNER_PHONES)


def _placed(phones: Sequence[TimedPhone], segments: Sequence[Segment]) -> list[float] | None:
    """Edges (n + 1) of ``phones`` from the segments of their sounds; ``None`` if the numbers of sounds differ."""
    sounds = [place for word in words(phones) for place in word]
    if len(segments) != len(sounds):
        return None
    known: dict[int, float] = {}  # Marks between sounds share the time between them.
    for place, (_, start, end) in zip(sounds, segments, strict=True):
        known |= {place: start, place + 1: end}
    edges = np.interp(range(len(phones) + 1), list(known), list(known.values()))
    return _with_blanks(edges.tolist(), set(sounds))


def _with_blanks(edges: list[float], sounds: set[int]) -> list[float]:
    """Widen blanks between words to at least :data:`BLANK_SECONDS`, taken from the neighbouring sounds."""
    place = 0
    while place < len(edges) - 1:
        last = place
        while last not in sounds and last < len(edges) - 1:
            last += 1
        missing = BLANK_SECONDS * (last - place) - (edges[last] - edges[place])
        if last > place and missing > 0 and place > 0 and last < len(edges) - 1:
            before = min(missing / 2, (edges[place] - edges[place - 1]) / 2)
            after = min(missing / 2, (edges[last + 1] - edges[last]) / 2)
            between = np.linspace(edges[place] - before, edges[last] + after, last - place + 1)
            edges[place : last + 1] = between.tolist()
        place = max(last, place + 1)
    return edges


def _closed(phones: Sequence[TimedPhone], edges: Sequence[float], length: float) -> tuple[TimedPhone, ...]:
    """``phones`` between ``edges``, with silence before and after; phones without length are left out."""
    named = zip((EDGE, *(name for name, _, _ in phones), EDGE), (0.0, *edges), (*edges, length), strict=True)
    return tuple((name, start, end) for name, start, end in named if end > start)
