"""One take as the audio thread reads it."""

from __future__ import annotations

import numpy as np

_FIRST_CAPACITY = 1 << 19
"""Samples that a recording which grows has room for at first."""


class Recording:
    """Mono float32 samples at the device's rate. It may still be growing; readers then see whole appended blocks."""

    def __init__(self, samples: np.ndarray) -> None:
        self._state = (np.ascontiguousarray(samples, np.float32), len(samples), True)

    @classmethod
    def growing(cls) -> Recording:
        """An empty recording that :meth:`append` extends until :meth:`end`."""
        recording = cls(np.zeros(0, np.float32))
        recording._state = (np.zeros(_FIRST_CAPACITY, np.float32), 0, False)
        return recording

    def append(self, samples: np.ndarray) -> None:
        """Add samples at the end. One thread only; the audio thread may be reading."""
        buffer, length, _ = self._state
        wanted = length + len(samples)
        if wanted > len(buffer):
            larger = np.zeros(max(wanted, 2 * len(buffer)), np.float32)
            larger[:length] = buffer[:length]
            buffer = larger
        buffer[length:wanted] = samples
        self._state = (buffer, wanted, False)  # Published last: a reader never sees samples that are not there yet.

    def end(self) -> None:
        """Nothing more will come."""
        self._state = (self._state[0], self._state[1], True)

    @property
    def samples(self) -> np.ndarray:
        """The recorded part, as a view."""
        return self._state[0][: self._state[1]]

    @property
    def length(self) -> int:
        """Samples so far."""
        return self._state[1]

    @property
    def complete(self) -> bool:
        """Whether nothing more will come."""
        return self._state[2]

    def read(self, start: int, gain: float, out: np.ndarray) -> None:
        """Fill ``out`` from ``start`` on, silence past the end."""
        buffer, length, _ = self._state
        count = min(len(out), max(0, length - start))
        np.multiply(buffer[start : start + count], gain, out=out[:count])
        out[count:] = 0
