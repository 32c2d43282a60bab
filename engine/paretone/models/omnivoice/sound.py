"""Processing of OmniVoice's reference before encoding, and of its speech after decoding. Torch-free.

Source: ``omnivoice/utils/audio.py`` and ``_post_process_audio`` of k2-fsa/OmniVoice at 468e927 (0.2.1), which work with
pydub: its clock is the millisecond, and what it cuts becomes 16-bit numbers on the way, by truncation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paretone.audio.prompt import FULL_SCALE, SHORT_PAUSES, Pauses, Track, decibels, spoken_ranges

SILENT = -50.0
"""dB of full scale below which sound is silence."""
LOOK = 10
"""Milliseconds between two looks for silence at the edges."""
REFERENCE_PAUSES, OUTPUT_PAUSES = (200, 100, 200), (500, 100, 100)
"""Lengths that pauses are cut to within, at the beginning and at the end, in milliseconds."""
QUIET = 0.1
"""Root mean square that references are raised to."""
PEAK = 0.5
"""Peak of speech without a reference."""
SHORTEST_CUT, LONGEST_CUT = 3.0, 15.0
"""Seconds that are left of a reference that is cut."""
FADE_SECONDS = PAD_SECONDS = 0.1
"""At both ends of what is heard; and between chunks of a long text, each fading out and in around as much silence."""


def quantised(samples: np.ndarray) -> np.ndarray:
    """Samples (n,) as 16-bit numbers hold them, cut towards zero."""
    return (np.trunc(np.clip(samples * FULL_SCALE, -FULL_SCALE, FULL_SCALE - 1)) / FULL_SCALE).astype(np.float32)


def without_silence(samples: np.ndarray, rate: int, pause: int, lead: int, trail: int) -> tuple[np.ndarray, int]:
    """Samples (n,) without pauses: of those longer than ``pause`` milliseconds so much stays on either side, at the
    beginning ``lead`` and at the end ``trail``. And how many samples are gone at the beginning, up to what is heard
    first."""
    track = Track(quantised(samples), rate)
    spoken = spoken_ranges(track, Pauses(pause, SILENT), pause)
    joined = replace(track, samples=track.samples[:0])
    for start, end in spoken:
        joined = joined.joined(track.cut(start, end))
    start = max(_silence(joined) - lead, 0)
    track = joined.cut(start, len(joined))
    backwards = replace(track, samples=track.samples[::-1])
    backwards = backwards.cut(max(_silence(backwards) - trail, 0), len(backwards))
    gone = joined.position(start) + (track.position(spoken[0][0]) if spoken else 0)
    return np.ascontiguousarray(backwards.samples[::-1]), gone


def cut_of(samples: np.ndarray, rate: int) -> float:
    """Seconds at which upstream cuts a long reference (n,) without transcript: as speech continues after the last pause
    within :data:`LONGEST_CUT`."""
    track = Track(quantised(samples), rate)
    starts = [start for start, _ in spoken_ranges(track, SHORT_PAUSES, 0) if start <= LONGEST_CUT * 1000]
    found = max(starts, default=0) / 1000
    return found if found >= SHORTEST_CUT else min(LONGEST_CUT, len(track) / 1000)


def _silence(track: Track) -> int:
    """Milliseconds of silence at the beginning."""
    starts = np.arange(0, len(track), LOOK)
    loud = decibels(track.levels(starts, LOOK)) >= SILENT
    return min(int(starts[loud.argmax()]) if loud.any() else len(starts) * LOOK, len(track))


def fade_edges(samples: np.ndarray, count: int) -> np.ndarray:
    """Samples (n,) faded in and out over ``count`` of them, at most half."""
    samples, count = samples.copy(), min(count, len(samples) // 2)
    if count:
        rise = np.linspace(0, 1, count, dtype=np.float32)
        samples[:count] *= rise
        samples[-count:] *= rise[::-1]
    return samples


# Joining of OmniVoice's passages: silence cut, levelled, faded at both ends, with silence between and around them.
#
# A single passage on a whole canvas is processed as upstream does. Of several, upstream processes all at the end; here
# each is heard when it is done, and without a reference all get the level of the first. In blocks nothing can be cut or
# levelled by audio that is still to come: there are only fades, the level of a reference if there is one, and no
# silence in front, so that speech begins with the first sample.


class WholePassages:
    """Joins passages that come whole. See :class:`paretone.models.families.speech.Joiner`."""

    def __init__(self, rate: int, level: float | None, *, cut: bool) -> None:
        """``level`` is the root mean square of the reference; silence is cut where ``cut``."""
        self._rate, self._cut = rate, cut
        self._gain = None if level is None else min(level / QUIET, 1.0)
        self._silence, self._fade = int(PAD_SECONDS * rate), int(FADE_SECONDS * rate)
        self._returned = 0
        self.lead = 0

    def begin(self) -> int:
        return self._returned

    def push(self, samples: np.ndarray) -> np.ndarray:
        gone = 0
        if self._cut:
            samples, gone = without_silence(samples, self._rate, *OUTPUT_PAUSES)
        if self._gain is None:
            peak = float(np.abs(samples).max(initial=0.0))
            self._gain = PEAK / peak if peak > 1e-6 else None
        samples = samples * np.float32(1.0 if self._gain is None else self._gain)
        self.lead = self._silence - gone
        return self._given(np.concatenate([self._zeros(), fade_edges(samples, self._fade)]))

    def finish(self) -> np.ndarray:
        return self._given(self._zeros())

    def _zeros(self) -> np.ndarray:
        return np.zeros(self._silence, np.float32)

    def _given(self, samples: np.ndarray) -> np.ndarray:
        self._returned += len(samples)
        return samples


class StreamedPassages:
    """Joins passages that come in pieces. See :class:`paretone.models.families.speech.Joiner`."""

    def __init__(self, rate: int, level: float | None) -> None:
        """``level`` is the root mean square of the reference."""
        self._gain = np.float32(1.0 if level is None else min(level / QUIET, 1.0))
        self._gap, self._fade = int(PAD_SECONDS * rate), int(FADE_SECONDS * rate)
        self._held = np.zeros(0, np.float32)
        """The end of what has come of the passage: it fades out, should nothing follow."""
        self._rising = 0
        """Samples of the passage that have faded in."""
        self._ended: np.ndarray | None = None
        """The end of the passage before, not returned yet."""
        self._returned = 0
        self.lead = 0

    def begin(self) -> int:
        if len(self._held):
            self._ended = np.concatenate([self._faded_out(), np.zeros(self._gap, np.float32)])
        self._rising = 0
        return self._returned + (0 if self._ended is None else len(self._ended))

    def push(self, samples: np.ndarray) -> np.ndarray:
        places = np.arange(self._rising, self._rising + len(samples), dtype=np.float32)
        self._rising += len(samples)
        rising = np.minimum(places / max(self._fade - 1, 1), 1.0).astype(np.float32)
        joined = np.concatenate([self._held, samples * self._gain * rising])
        final = max(len(joined) - self._fade, 0)
        self._held = joined[final:]
        ready = joined[:final]
        if self._ended is not None:
            ready, self._ended = np.concatenate([self._ended, ready]), None
        return self._given(ready)

    def finish(self) -> np.ndarray:
        return self._given(self._faded_out())

    def _faded_out(self) -> np.ndarray:
        held, self._held = self._held, np.zeros(0, np.float32)
        return held * np.linspace(1, 0, len(held), dtype=np.float32)

    def _given(self, samples: np.ndarray) -> np.ndarray:
        self._returned += len(samples)
        return samples
