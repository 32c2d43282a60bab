"""When each phone of a recording sounds, for a user's own voice: from its transcript.

Where pocketsphinx is installed it aligns the recording with the transcript (to about 20 ms). Without it, or when it
does not find the transcript in the recording, mean lengths are stretched to the length of the speech
(:mod:`paretone.front_end.natural.aligning`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from paretone.audio.resampling import resample
from paretone.errors import AudioError
from paretone.extras import how_to_add
from paretone.front_end import forced_alignment
from paretone.front_end.forced_alignment import FoundWord
from paretone.front_end.timed_phone import TimedPhone

FORCED = "pocketsphinx"
MEAN_LENGTHS = "mean lengths"

QUIET = 10 ** (-35 / 20)
"""Speech begins and ends where the level of 10 ms is this share of the loudest."""
FAINT = 0.05
"""Peak below which a recording is raised for the aligner."""
SLOWEST, FASTEST = 3.5, 0.3
"""A recording longer or shorter by this factor than expected does not say what the transcript says."""


@dataclass(frozen=True)
class Alignment:
    """Phones of a recording, from its start to its end without gaps."""

    phones: tuple[TimedPhone, ...]
    method: str
    """``pocketsphinx`` or ``mean lengths``."""
    words: tuple[FoundWord, ...] = ()
    """The words of the transcript, if pocketsphinx found them."""


def alignment_notes(found: Alignment) -> tuple[str, ...]:
    """What the user should know of an alignment, as sentences."""
    if found.method != MEAN_LENGTHS:
        return ()
    estimated = (
        "When each sound of the voice's recording is spoken was only estimated, so the voice may be copied less well"
    )
    if not forced_alignment.installed():
        return (f"{estimated}; to have it measured, {how_to_add('judge')}.",)
    return (f"{estimated}.",)  # That the words were not found is among the doubts about the transcript.


class Aligner(Protocol):
    """A text front end that finds its phones in recordings."""

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """The phones of a recording (n,) at ``rate`` Hz. Raises :class:`AudioError` and
        :class:`paretone.errors.TextError`."""


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
            f"{end - start:.1f} s of the recording's speech are used, but its transcript would take about "
            f"{expected:.1f} s; check that the transcript has exactly the words of the recording."
        )
    return start, end


def forced_words(samples: np.ndarray, rate: int, words: Sequence[str]) -> tuple[FoundWord, ...]:
    """As :func:`paretone.front_end.forced_alignment.found_words`, for float samples (n,) at any rate. Quiet ones are
    raised, for the aligner hears 16 bits."""
    loudest = float(np.abs(samples).max(initial=0.0))
    gain = np.float32(1.0 if not 0 < loudest < FAINT else 0.5 / loudest)
    heard = resample(samples * gain, rate, forced_alignment.RATE)
    return forced_alignment.found_words((heard.clip(-1, 1) * 32767).astype(np.int16).tobytes(), words)
