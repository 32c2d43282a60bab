"""Distance of speech from a recording of the same words with other timing: frames are paired by dynamic time warping
(Sakoe and Chiba, 1978) before they are compared."""

from __future__ import annotations

import numpy as np

from paretone.errors import SettingError


def warped_log_mel_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Mean absolute difference of two natural-log mel spectrograms (frames, bands) and (other frames, bands) along the
    best pairing of their frames, in natural-log units.

    Raises :class:`SettingError` for spectrograms without frames or of different bands.
    """
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1] or not (len(first) and len(second)):
        raise SettingError(
            f"Spectrograms of shapes {first.shape} and {second.shape} cannot be aligned; both need frames by the same "
            "bands."
        )
    costs = np.stack([np.abs(row - second).mean(1) for row in first.astype(np.float64)])
    path = best_path(costs)
    return float(costs[path[:, 0], path[:, 1]].mean())


def best_path(costs: np.ndarray) -> np.ndarray:
    """The pairing (pairs, 2) from the first to the last frames of both that costs the least in sum, never going back.

    ``costs`` is (n, m).
    """
    rows, columns = costs.shape
    # Sums by antidiagonals, which depend only on the two before: entry i + 1 of a line is row i. The edges are walls.
    sums = np.full((rows + columns - 1, rows + 1), np.inf)
    sums[0, 1] = costs[0, 0]
    for line in range(1, rows + columns - 1):
        row = np.arange(max(0, line - columns + 1), min(rows, line + 1))
        before = np.minimum(sums[line - 1, row], sums[line - 1, row + 1])
        if line > 1:
            before = np.minimum(before, sums[line - 2, row])
        sums[line, row + 1] = costs[row, line - row] + before
    path = [(rows - 1, columns - 1)]
    while path[-1] != (0, 0):
        row, column = path[-1]
        steps = [(row - 1, column - 1), (row - 1, column), (row, column - 1)]
        path.append(min((one for one in steps if min(one) >= 0), key=lambda one: sums[sum(one), one[0] + 1]))
    return np.array(path[::-1])
