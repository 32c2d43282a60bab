"""The outline of a sound that may still grow: its least and greatest sample in every two-hundredth of a second."""

from __future__ import annotations

import numpy as np

_PER_SECOND = 200
_FIRST_CAPACITY = 4096


class Envelope:
    """Grows with every piece and never looks at a sample twice, so an hour of speech is drawn as fast as a second."""

    def __init__(self, rate: int, samples: np.ndarray | None = None) -> None:
        """``rate`` is in hertz; ``samples`` (n,) is what there is already."""
        self.rate = rate
        self.length = 0
        """Samples so far."""
        self._block = max(1, rate // _PER_SECOND)
        self._ends = np.zeros((2, _FIRST_CAPACITY), np.float32)
        self._whole = 0
        self._rest = np.zeros(0, np.float32)
        if samples is not None:
            self.append(samples)

    @property
    def seconds(self) -> float:
        """Length so far."""
        return self.length / self.rate

    def append(self, samples: np.ndarray) -> None:
        """More samples (n,)."""
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
        """The greatest magnitude so far."""
        ends = self._all()
        return float(np.abs(ends).max()) if ends.size else 0.0

    def columns(self, count: int, seconds: float) -> np.ndarray:
        """Least and greatest sample (2, n) in each of ``count`` equal parts of ``seconds`` of time, for as many of them
        as the sound reaches into."""
        ends = self._all()
        shares = np.arange(count) * seconds * self.rate / (count * self._block)
        starts = np.floor(shares).astype(int)
        starts = starts[starts < ends.shape[1]]
        if not len(starts):
            return np.zeros((2, 0), np.float32)
        lowest, highest = np.minimum.reduceat(ends[0], starts), np.maximum.reduceat(ends[1], starts)
        # The last part would take in all that comes after it.
        stop = max(starts[-1] + 1, int(np.ceil(count and seconds * self.rate / self._block)))
        last = ends[:, starts[-1] : stop]
        lowest[-1], highest[-1] = last[0].min(), last[1].max()
        return np.stack((lowest, highest))

    def _all(self) -> np.ndarray:
        """The ends of all blocks, of the last and incomplete one too."""
        ends = self._ends[:, : self._whole]
        if not len(self._rest):
            return ends
        return np.concatenate((ends, [[self._rest.min()], [self._rest.max()]]), axis=1)
