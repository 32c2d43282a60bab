"""A ranking by preference: the Bradley–Terry model of which of two is preferred, with intervals.

The one is preferred to the other with probability 1/(1 + exp(s₂ − s₁)); strengths s have the mean 0 (Bradley and Terry
1952). A weak normal prior keeps them finite where somebody won always. Free of Qt and of torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

PRIOR = 2.0
"""Standard deviation of the strengths beforehand: one in three is preferred by more than seven to one."""
_STEPS = 100
_PRECISE = 1e-9
_Z = 1.959964
_DRAWS = 4000


@dataclass(frozen=True)
class Preferred:
    """One comparison: ``better`` was preferred to ``worse``, or, in a tie, neither."""

    better: int
    worse: int
    tie: bool = False


@dataclass(frozen=True)
class Ranked:
    """One of those that were compared."""

    number: int
    strength: float
    """Log odds of being preferred to the mean."""
    low: float
    high: float
    """95 % interval of the strength."""
    best: float
    """Probability that it is the best of all."""
    compared: int
    """Comparisons that it was in."""


def ranking(count: int, comparisons: Sequence[Preferred], seed: int = 0) -> tuple[Ranked, ...]:
    """All ``count``, the most preferred first. A tie counts half for either.

    Intervals are those of the posterior's normal approximation. Raises :class:`ValueError` if a comparison is of others
    or of one with itself.
    """
    wins = np.zeros((count, count))
    for one in comparisons:
        if one.better == one.worse or not (0 <= one.better < count and 0 <= one.worse < count):
            raise ValueError(f"{one.better} and {one.worse} of {count} cannot be compared")
        share = 0.5 if one.tie else 1.0
        wins[one.better, one.worse] += share
        wins[one.worse, one.better] += 1 - share
    strengths, covariance = _posterior(wins)
    spread = np.sqrt(np.diag(covariance))
    drawn = np.random.default_rng(seed).multivariate_normal(strengths, covariance, _DRAWS)
    best = np.bincount(drawn.argmax(1), minlength=count) / _DRAWS
    compared = (wins + wins.T).sum(1)
    return tuple(
        Ranked(
            at,
            float(strengths[at]),
            float(strengths[at] - _Z * spread[at]),
            float(strengths[at] + _Z * spread[at]),
            float(best[at]),
            round(compared[at]),
        )
        for at in map(int, np.argsort(-strengths, kind="stable"))
    )


def pairs(count: int, seed: int) -> tuple[tuple[int, int], ...]:
    """Every pair once, in random order, either way round equally often within one."""
    generator = np.random.default_rng(seed)
    found = list(combinations(range(count), 2))
    generator.shuffle(found)
    turned = np.arange(len(found)) % 2 == 0
    generator.shuffle(turned)
    return tuple((int(b), int(a)) if swap else (int(a), int(b)) for (a, b), swap in zip(found, turned, strict=True))


def _posterior(wins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mode (n,) and covariance (n, n) of the strengths, centred, by Newton's method: the problem is concave."""
    count = len(wins)
    games = wins + wins.T
    strengths = np.zeros(count)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        slope = wins.sum(1) - (games * chance).sum(1) - strengths / PRIOR**2
        between = games * chance * (1 - chance)
        information = np.diag(between.sum(1) + PRIOR**-2) - between
        change = np.linalg.solve(information, slope)
        strengths = strengths + change
        if np.abs(change).max() < _PRECISE:
            break
    centring = np.eye(count) - 1 / count
    return centring @ strengths, centring @ np.linalg.inv(information) @ centring
