"""Preparing a reference recording like the official F5-TTS pipeline: no long pauses, at most 12 s, no silent edges.

The official code uses pydub, with times in milliseconds and levels in whole 16-bit numbers; so do the rules here
(``preprocess_ref_audio_text`` of ``infer/utils_infer.py``, pydub 0.25). Remaining differences: levels are those of the
mono mix, recordings below 11,025 Hz keep their rate, and a recording that these rules find silent is raised to the
usual speech level and tried again. Torch-free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from paretone.audio.recording import SHORTEST_SECONDS, Recording
from paretone.errors import AudioError

LONGEST = 12_000
"""Maximum length of a prompt in milliseconds."""
ENOUGH = 6_000
"""Length in milliseconds from which a prompt need not grow."""
KEPT_SILENCE = 1_000
"""Milliseconds of a pause kept on either side of speech."""
STEP = 10
"""Milliseconds between silence checks."""
EDGE_LEVEL = -42.0
TAIL_FRAMES, TAIL_RATE = 551, 11025
"""The 50 ms of silence at the end, which pydub makes at this rate and then converts."""
FULL_SCALE = 32768
LOUDEST = 100
"""Milliseconds of the loudest part, whose level is taken as the recording's."""
USUAL_LEVEL = -13.0
"""Usual level of recorded speech, in dB of full scale."""
QUIET_LEVEL = -30.0
"""Below this level the official rules may take soft speech for silence."""
WORTH_SAYING = 0.3
"""Lost seconds of speech that are worth a note."""


@dataclass(frozen=True)
class Pauses:
    """Definition of a pause: at least ``milliseconds`` at no more than ``level`` dB of full scale."""

    milliseconds: int
    level: float


LONG_PAUSES = Pauses(1000, -50.0)
SHORT_PAUSES = Pauses(100, -40.0)


@dataclass(frozen=True)
class Track:
    """Samples that are measured and cut by the millisecond, as in pydub."""

    samples: np.ndarray = field(repr=False)
    sample_rate: int

    def __len__(self) -> int:
        return round(1000 * len(self.samples) / self.sample_rate)

    def position(self, milliseconds: int) -> int:
        return int(milliseconds * (self.sample_rate / 1000.0))

    def cut(self, start: int, end: int) -> Track:
        """Part from ``start`` to ``end`` milliseconds; the missing part of a last, rounded millisecond is silence."""
        first, last = (self.position(min(time, len(self))) for time in (start, end))
        part = self.samples[first:last]
        return replace(self, samples=np.pad(part, (0, max(last - first - len(part), 0))))

    def joined(self, other: Track) -> Track:
        return replace(self, samples=np.concatenate([self.samples, other.samples]))

    def levels(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Root mean squares of ``length`` milliseconds from each of ``starts``, in whole 16-bit numbers."""
        squares = np.concatenate([[0.0], np.cumsum(np.square(self.samples.astype(np.float64) * FULL_SCALE))])
        firsts = (np.minimum(starts, len(self)) * (self.sample_rate / 1000.0)).astype(np.int64)
        lasts = (np.minimum(starts + length, len(self)) * (self.sample_rate / 1000.0)).astype(np.int64)
        inside = squares[np.minimum(lasts, len(self.samples))] - squares[np.minimum(firsts, len(self.samples))]
        return np.floor(np.sqrt(np.maximum(inside, 0) / np.maximum(lasts - firsts, 1)))


def prepare_prompt(recording: Recording) -> Recording:
    """The recording as model input, with notes on changes. Raises :class:`AudioError` if it is silent throughout."""
    kept, clipped, notes = _kept(recording)
    if clipped:
        notes = (*notes, f"The reference recording was cut to its first {len(kept) / 1000:.1f} s.")
    tail = np.zeros((TAIL_FRAMES - 1) * recording.sample_rate // TAIL_RATE + 1, np.float32)
    return Recording(np.concatenate([kept.samples, tail]).astype(np.float32), recording.sample_rate, notes)


def _kept(recording: Recording) -> tuple[Track, bool, tuple[str, ...]]:
    """The kept part of a recording, whether more than pauses and edges was cut, and notes on its level."""
    whole = Track(recording.samples, recording.sample_rate)
    level = loudest(whole)
    if level == -math.inf:
        raise AudioError("The reference recording is silent throughout; choose a recording of speech.")
    kept, clipped = _officially(whole)
    notes, gain = recording.notes, USUAL_LEVEL - level
    if level < QUIET_LEVEL and len(kept) < 1000 * SHORTEST_SECONDS:
        kept, clipped = _officially(_raised(whole, gain))
        notes = (*notes, f"The reference recording is very quiet; it was raised by {gain:.0f} dB.")
    elif level < QUIET_LEVEL:
        lost = (len(_officially(_raised(whole, gain))[0]) - len(kept)) / 1000
        if lost > WORTH_SAYING:
            notes = (
                *notes,
                f"The reference recording is quiet, so {lost:.1f} s of its speech counted as silence and were cut, as "
                f"in the official code; raise it by about {gain:.0f} dB to keep them.",
            )
    return kept, clipped, notes


def is_cut(recording: Recording) -> bool:
    """Whether :func:`prepare_prompt` cuts off speech at the end. Raises :class:`AudioError` likewise."""
    return len(Track(recording.samples, recording.sample_rate)) > LONGEST and _kept(recording)[1]


def loudest(track: Track) -> float:
    """Level of the loudest tenth of a second, in dB of full scale; −∞ for silence."""
    window = max(1, min(track.position(LOUDEST), len(track.samples)))
    squares = np.concatenate([[0.0], np.cumsum(np.square(track.samples, dtype=np.float64))])
    most = float((squares[window:] - squares[:-window]).max(initial=0.0)) / window
    return 10 * math.log10(most) if most > 0 else -math.inf


def _raised(track: Track, gain: float) -> Track:
    """Amplify by ``gain`` dB; clicks beyond full scale are clipped."""
    return replace(track, samples=np.clip(track.samples * np.float32(10 ** (gain / 20)), -1.0, 1.0))


def _officially(whole: Track) -> tuple[Track, bool]:
    """The part kept by the official rules, and whether more than pauses and edges was cut."""
    track, clipped = _shortened(whole, LONG_PAUSES)
    if len(track) > LONGEST:
        track, clipped = _shortened(whole, SHORT_PAUSES)
    if len(track) > LONGEST:
        track, clipped = track.cut(0, LONGEST), True
    # Silence is trimmed at the start, in steps of 10 ms, and at the end, in steps of 1 ms.
    starts = np.arange(0, len(track), 10)
    is_loud = decibels(track.levels(starts, 10)) >= EDGE_LEVEL
    track = track.cut(int(starts[is_loud.argmax()]) if is_loud.any() else len(track), len(track))
    loud = np.flatnonzero(decibels(track.levels(np.arange(len(track)), 1)) > EDGE_LEVEL)
    silent_at_end = len(track) - 1 - int(loud[-1]) if len(loud) else len(track)
    seconds = len(track.samples) / track.sample_rate
    for _ in range(silent_at_end):  # One by one, as the official code's rounding errors add up.
        seconds -= 0.001
    return track.cut(0, max(int(seconds * 1000), 0)), clipped


def silent_ranges(track: Track, pauses: Pauses) -> list[tuple[int, int]]:
    """Pauses as (start, end) in milliseconds, overlapping ones merged."""
    last_start = len(track) - pauses.milliseconds
    if last_start < 0:
        return []
    starts = np.arange(0, last_start + 1, STEP)
    if last_start % STEP:
        starts = np.append(starts, last_start)
    limit = 10 ** (pauses.level / 20) * FULL_SCALE
    silent = starts[track.levels(starts, pauses.milliseconds) <= limit].tolist()
    ranges: list[tuple[int, int]] = []
    for start in silent:
        end = start + pauses.milliseconds
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], end
        else:
            ranges.append((start, end))
    return ranges


def spoken_ranges(track: Track, pauses: Pauses, kept: int = KEPT_SILENCE) -> list[tuple[int, int]]:
    """Speech between the pauses, in milliseconds, widened by up to ``kept`` on either side."""
    silent = silent_ranges(track, pauses)
    if silent == [(0, len(track))]:
        return []
    borders = [0, *(border for pause in silent for border in pause), len(track)]
    spoken = list(zip(borders[::2], borders[1::2], strict=True))
    if spoken[-1][0] == len(track) and silent:
        spoken.pop()
    if spoken and spoken[0] == (0, 0):
        spoken.pop(0)
    widened = [[start - kept, end + kept] for start, end in spoken]
    for one, following in pairwise(widened):
        if following[0] < one[1]:
            one[1] = following[0] = (one[1] + following[0]) // 2
    return [(max(start, 0), min(end, len(track))) for start, end in widened]


def _shortened(track: Track, pauses: Pauses) -> tuple[Track, bool]:
    """The first speech ranges, up to 12 s; a longer range only after less than 6 s. With whether anything was cut."""
    kept = replace(track, samples=track.samples[:0])
    for start, end in spoken_ranges(track, pauses):
        longer = kept.joined(track.cut(start, end))
        if len(kept) > ENOUGH and len(longer) > LONGEST:
            return kept, True
        kept = longer
    return kept, False


def decibels(levels: np.ndarray) -> np.ndarray:
    """Decibels of full scale from :meth:`Track.levels`."""
    return np.array([20 * math.log10(level / FULL_SCALE) if level else -math.inf for level in levels])
