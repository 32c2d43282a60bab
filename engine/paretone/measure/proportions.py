"""Intervals of counted shares."""

from __future__ import annotations

import math

NORMAL_95 = 1.959964
"""The normal distribution's 97.5 % quantile."""


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a proportion, each 0 to 1 (Wilson's score interval, which stays within bounds and is of use for
    few trials). Without trials it is everything."""
    if trials == 0:
        return 0.0, 1.0
    share, square = successes / trials, NORMAL_95**2
    centre = (share + square / (2 * trials)) / (1 + square / trials)
    half = NORMAL_95 / (1 + square / trials) * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)
