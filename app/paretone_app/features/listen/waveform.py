"""The outline of a waveform: the smallest and largest sample of each pixel's worth of time."""

from __future__ import annotations

import numpy as np


def outline(samples: np.ndarray, rate: int, start: float, end: float, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (seconds, amplitude) of a line that fills the waveform between ``start`` and ``end`` seconds.

    No sample is missed: where several fall on one of the ``columns``, the line visits their least and greatest value.
    With fewer samples than columns these are the samples themselves.
    """
    first = max(0, int(np.floor(start * rate)))
    last = min(len(samples), int(np.ceil(end * rate)) + 1)
    part = samples[first:last]
    if len(part) <= 2 * max(1, columns):
        return np.arange(first, first + len(part)) / rate, part
    per_column = -(-len(part) // columns)
    whole = len(part) // per_column
    head = part[: whole * per_column].reshape(whole, per_column)
    lowest, highest = head.min(axis=1), head.max(axis=1)
    rest = part[whole * per_column :]
    if len(rest):
        lowest, highest = np.append(lowest, rest.min()), np.append(highest, rest.max())
    times = np.repeat((first + per_column * (np.arange(len(lowest)) + 0.5)) / rate, 2)
    values = np.empty(2 * len(lowest), part.dtype)
    values[0::2], values[1::2] = lowest, highest
    return times, values
