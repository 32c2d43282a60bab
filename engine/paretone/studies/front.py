"""The non-dominated front of points. Torch-free."""

from __future__ import annotations

import numpy as np


def front(costs: np.ndarray) -> np.ndarray:
    """Which of the points (n, objectives) are on the front, as booleans (n,); all objectives are costs.

    A point is dominated by another that is at most as costly in everything and less so in something; equal points do
    not dominate each other. A point with a value that is not a number is on no front and dominates nothing.
    """
    costs = np.asarray(costs, np.float64)
    if costs.ndim != 2:
        raise ValueError(f"Points must be (n, objectives), not {costs.shape}.")
    usable = np.isfinite(costs).all(1)
    if costs.shape[1] == 2:
        return _front_of_two(costs, usable)
    best = usable.copy()
    # By the first objective, then the others: whatever dominates a point comes before it, and by transitivity it is
    # enough to ask those that are on the front themselves.
    found = np.empty((0, costs.shape[1]))
    for index in np.lexsort(costs.T[::-1]):
        if not usable[index]:
            continue
        point = costs[index]
        dominated = (found <= point).all(1) & (found < point).any(1)
        best[index] = not dominated.any()
        if best[index]:
            found = np.vstack([found, point])
    return best


def _front_of_two(costs: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """The same for two objectives at once, without a loop: a view follows thousands of points while it is used."""
    best = np.zeros(len(costs), bool)
    if not usable.any():
        return best
    first, group = np.unique(costs[usable, 0], return_inverse=True)
    second = costs[usable, 1]
    least = np.full(len(first), np.inf)
    np.minimum.at(least, group, second)
    # What those that cost less in the first objective cost in the second, at least.
    before = np.r_[np.inf, np.minimum.accumulate(least)[:-1]]
    best[usable] = (second == least[group]) & (second < before[group])
    return best


def costs_of(values: np.ndarray, better: tuple[str, ...]) -> np.ndarray:
    """``values`` (n, objectives) as costs: those of which ``better`` says ``higher`` are negated."""
    signs = np.array([-1.0 if one == "higher" else 1.0 for one in better])
    return np.asarray(values, np.float64) * signs
