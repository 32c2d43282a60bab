"""The percentile bootstrap: 95 % intervals by resampling with replacement. Torch-free.

Draws are seeded, so equal figures have equal intervals. Source: B. Efron and R. Tibshirani, "An Introduction to the
Bootstrap", 1993, chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

PERCENTILES = (2.5, 97.5)


def picks(size: int, draws: int, seed: int = 0) -> np.ndarray:
    """Which of ``size`` findings each draw has, (draws, size)."""
    return np.random.default_rng(seed).integers(0, size, (draws, size))


def ends(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Low and high end of the 95 % interval of a statistic of every draw, (draws, …); each of shape (…)."""
    low, high = np.percentile(drawn, PERCENTILES, axis=0)
    return low, high


def bootstrap(
    statistic: Callable[..., np.ndarray], *findings: np.ndarray, draws: int, seed: int = 0
) -> tuple[float, float, float]:
    """A statistic of paired ``findings``, (n,) each, with the ends of its 95 % interval.

    ``statistic`` takes draws of all findings, (draws, n) each, and gives its value for each of them, (draws,).
    """
    columns = [np.asarray(one) for one in findings]
    chosen = picks(len(columns[0]), draws, seed)
    low, high = ends(statistic(*(one[chosen] for one in columns)))
    return float(statistic(*(one[None] for one in columns))[0]), float(low), float(high)


def median_interval(values: Sequence[float], draws: int = 4000, seed: int = 0) -> tuple[float, float, float]:
    """The median of ``values`` with the ends of its 95 % interval; equal values give equal intervals."""
    return bootstrap(lambda drawn: np.median(drawn, axis=1), np.asarray(values, dtype=float), draws=draws, seed=seed)


def mean_ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The mean of one finding over the mean of another in each draw, (draws, n) each: (draws,)."""
    return above.mean(1) / below.mean(1)


def rate(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """All counts over all sizes in each draw, (draws, n) each: (draws,)."""
    return counts.sum(1) / sizes.sum(1)
