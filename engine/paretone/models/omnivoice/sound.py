"""Processing of OmniVoice's reference before encoding, and of its speech after decoding. Torch-free.

Source: ``omnivoice/utils/audio.py`` and ``_post_process_audio`` of k2-fsa/OmniVoice at 468e927 (0.2.1), which use
pydub: its clock is the millisecond, and cutting truncates samples to 16 bits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paretone.audio.prompt import FULL_SCALE, SHORT_PAUSES, Pauses, Track, decibels, spoken_ranges

SILENT = -50.0
"""Level in dB of full scale below which sound is silence."""
LOOK = 10
"""Milliseconds between checks for silence at the edges."""
REFERENCE_PAUSES, OUTPUT_PAUSES = (200, 100, 200), (500, 100, 100)
"""Maximum length of pauses inside, at the beginning and at the end, in milliseconds."""
QUIET = 0.1
"""RMS to which references are amplified."""
PEAK = 0.5
"""Peak of speech without a reference."""
SHORTEST_CUT, LONGEST_CUT = 3.0, 15.0
"""Bounds of the seconds that remain of a cut reference."""
FADE_SECONDS = PAD_SECONDS = 0.1
"""Fade and silence at both ends of the output, and between chunks of a long text."""


def quantised(samples: np.ndarray) -> np.ndarray:
    """Samples (n,) truncated to 16-bit values."""
    return (np.trunc(np.clip(samples * FULL_SCALE, -FULL_SCALE, FULL_SCALE - 1)) / FULL_SCALE).astype(np.float32)


def without_silence(samples: np.ndarray, rate: int, pause: int, lead: int, trail: int) -> tuple[np.ndarray, int]:
    """Shorten pauses in samples (n,): of those longer than ``pause`` milliseconds that much is kept on either side,
    ``lead`` at the beginning and ``trail`` at the end. Also return the number of samples removed before the first
    sound."""
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
    """Seconds at which upstream cuts a long reference (n,) without transcript: where speech resumes after the last
    pause within :data:`LONGEST_CUT`."""
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
    """Fade samples (n,) in and out over ``count`` samples, at most half."""
    samples, count = samples.copy(), min(count, len(samples) // 2)
    if count:
        rise = np.linspace(0, 1, count, dtype=np.float32)
        samples[:count] *= rise
        samples[-count:] *= rise[::-1]
    return samples


# Joining of OmniVoice's passages: silence cut, levelled, faded at both ends, with silence between and around them.
#
# A single passage on one canvas is processed as upstream. Upstream processes several passages together at the end; here
# each is output when it is done, and without a reference all get the level of the first. Blocks cannot be cut or
# levelled by later audio: they have only fades, the level of a reference if any, and no silence in front, so that
# speech begins with the first sample.


class WholePassages:
    """Joins complete passages. See :class:`paretone.models.families.speech.Joiner`."""

    def __init__(self, rate: int, level: float | None, *, cut: bool) -> None:
        """``level`` is the RMS of the reference; ``cut``: cut silence."""
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
    """Joins passages that arrive in pieces. See :class:`paretone.models.families.speech.Joiner`."""

    def __init__(self, rate: int, level: float | None) -> None:
        """``level`` is the RMS of the reference."""
        self._gain = np.float32(1.0 if level is None else min(level / QUIET, 1.0))
        self._gap, self._fade = int(PAD_SECONDS * rate), int(FADE_SECONDS * rate)
        self._held = np.zeros(0, np.float32)
        """End of the passage so far, which fades out if nothing follows."""
        self._rising = 0
        """Number of samples of the passage so far, for the fade-in."""
        self._ended: np.ndarray | None = None
        """End of the previous passage, not yet returned."""
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
