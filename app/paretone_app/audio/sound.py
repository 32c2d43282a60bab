"""A sound for the player, its envelope, and the position of the same word in another take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paretone.audio.spectrogram import log_mel
from paretone.measure.fidelity import best_path
from paretone.measure.loudness import FULL_SCALE, gain_to, headroom

_PER_SECOND = 200
_FIRST_CAPACITY = 4096


class Envelope:
    """Outline of a growing sound. Each sample is read once, so an hour of speech is drawn as fast as a second."""

    def __init__(self, rate: int, samples: np.ndarray | None = None) -> None:
        """``rate`` in hertz; ``samples`` (n,) so far."""
        self.rate = rate
        self.length = 0
        self._block = max(1, rate // _PER_SECOND)
        self._ends = np.zeros((2, _FIRST_CAPACITY), np.float32)
        self._whole = 0
        self._rest = np.zeros(0, np.float32)
        if samples is not None:
            self.append(samples)

    @property
    def seconds(self) -> float:
        return self.length / self.rate

    def append(self, samples: np.ndarray) -> None:
        self.length += len(samples)
        joined = np.concatenate((self._rest, np.asarray(samples, np.float32)))
        count = len(joined) // self._block
        blocks = joined[: count * self._block].reshape(count, self._block)
        while self._whole + count > self._ends.shape[1]:
            self._ends = np.concatenate((self._ends, np.zeros_like(self._ends)), axis=1)
        part = slice(self._whole, self._whole + count)
        self._ends[0, part], self._ends[1, part] = blocks.min(axis=1), blocks.max(axis=1)
        self._whole += count
        self._rest = joined[count * self._block :]

    @property
    def peak(self) -> float:
        ends = self._all()
        return float(np.abs(ends).max()) if ends.size else 0.0

    def columns(self, count: int, seconds: float) -> np.ndarray:
        """Least and greatest sample (2, n) in each of ``count`` equal parts of ``seconds``, as far as it goes."""
        ends = self._all()
        shares = np.arange(count) * seconds * self.rate / (count * self._block)
        starts = np.floor(shares).astype(int)
        starts = starts[starts < ends.shape[1]]
        if not len(starts):
            return np.zeros((2, 0), np.float32)
        lowest, highest = np.minimum.reduceat(ends[0], starts), np.maximum.reduceat(ends[1], starts)
        # Limit the last part, which would include everything after it.
        stop = max(starts[-1] + 1, int(np.ceil(count and seconds * self.rate / self._block)))
        last = ends[:, starts[-1] : stop]
        lowest[-1], highest[-1] = last[0].min(), last[1].max()
        return np.stack((lowest, highest))

    def _all(self) -> np.ndarray:
        """Extremes of all blocks, including the incomplete last one."""
        ends = self._ends[:, : self._whole]
        if not len(self._rest):
            return ends
        return np.concatenate((ends, [[self._rest.min()], [self._rest.max()]]), axis=1)


_POOLED = 2
"""Spectrogram frames averaged together."""
FRAME_SECONDS = _POOLED * 256 / 24_000
_MOST = 400
"""Most frames to align: about 0.03 s of work."""


def frames_of(samples: np.ndarray, rate: int) -> np.ndarray:
    """Spectrogram of mono ``samples``: (frames, bands), natural-log mel, one frame per :data:`FRAME_SECONDS`."""
    mel = log_mel(samples, rate)
    short = -len(mel) % _POOLED
    return np.pad(mel, ((0, short), (0, 0)), mode="edge").reshape(-1, _POOLED, mel.shape[1]).mean(1)


def same_place(one: np.ndarray, other: np.ndarray, seconds: float) -> float:
    """Position in ``other``, in seconds, of the syllable at ``seconds`` in ``one``; both from :func:`frames_of`."""
    if not len(one) or not len(other):
        return 0.0
    # The work grows with the product of both lengths: subsample long sounds.
    every = -(-max(len(one), len(other)) // _MOST)
    first, second = one[::every], other[::every]
    path = best_path(np.stack([np.abs(row - second).mean(1) for row in first]))
    frame = min(int(seconds / FRAME_SECONDS) // every, len(first) - 1)
    # The first of several partners: repeat a little rather than skip.
    return _beginning(other, every * int(path[path[:, 0] == frame, 1].min())) * FRAME_SECONDS


def _beginning(frames: np.ndarray, at: int) -> int:
    """The last frame 14 dB (1.6 natural-log mel units) below the peak that follows; ``at`` if none is within 0.4 s."""
    loudness = np.log(np.exp(frames.astype(np.float64)).mean(1))
    first, peak = max(0, at - round(0.4 / FRAME_SECONDS)), loudness[at]
    for frame in range(at, first - 1, -1):
        peak = max(peak, loudness[frame])
        if loudness[frame] <= peak - 1.6:
            return frame
    return at


ALONE_LUFS = -23.0
"""Loudness of sounds played alone (EBU R 128), so that they can be compared in sequence."""


def is_silent(samples: np.ndarray) -> bool:
    """Whether mono ``samples`` are inaudible at any volume suited to speech: 80 dB below full scale."""
    return not samples.size or float(np.abs(samples).max()) < 1e-4


@dataclass(frozen=True)
class Sound:
    """A sound other than A and B: a take of the library, a point of a study, a part of a take."""

    samples: np.ndarray
    """(n,) float32 mono."""
    rate: int
    title: str
    """Description with origin, in one line."""
    detail: str = ""
    """Its text, for tooltips."""
    key: str = ""
    """Identity, such as the id of its take."""
    part_of: tuple[str, float] | None = None
    """The side it is a part of, and its offset there in seconds."""

    @cached_property
    def gain(self) -> float:
        """Linear gain for the loudness of sounds played alone, without clipping; measured on the first 15 s."""
        matched = 10 ** (gain_to(ALONE_LUFS, self.samples[: 15 * self.rate], self.rate) / 20)
        return min(matched, FULL_SCALE / max(float(np.abs(self.samples).max(initial=0.0)), 1e-9))

    @cached_property
    def headroom(self) -> float:
        return headroom(self.samples)

    @cached_property
    def envelope(self) -> Envelope:
        return Envelope(self.rate, self.samples)

    @cached_property
    def frames(self) -> np.ndarray:
        """Spectrogram for aligning it with other sounds of the same words."""
        return frames_of(self.samples, self.rate)

    def worked_out(self) -> Sound:
        """This sound with gain, outline and frames computed, for use in a worker thread."""
        _ = self.gain, self.headroom, self.envelope, self.frames
        return self

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate
