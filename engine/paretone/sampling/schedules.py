"""Time grids of the flow family. Torch-free: a front end draws the effective grid with the same numbers.

Sources: EPSS tables from Zheng et al., arXiv 2505.19931, as in the official ``f5_tts/model/utils.py``; sway sampling
from the F5-TTS paper, arXiv 2410.06885, section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from paretone.errors import SettingError

EPSS = {
    5: (0, 2, 4, 8, 16, 32),
    6: (0, 2, 4, 6, 8, 16, 32),
    7: (0, 2, 4, 6, 8, 16, 24, 32),
    10: (0, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32),
    12: (0, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32),
    16: (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32),
}
"""Empirically pruned step sampling: grid points in units of 1/32, by number of steps."""

SPACINGS = ("epss", "uniform")


def effective_spacing(steps: int, spacing: str) -> str:
    """Effective spacing: EPSS has tables for some numbers of steps only and is uniform for all others."""
    if spacing not in SPACINGS:
        raise SettingError(f"The step grid must be one of {', '.join(SPACINGS)}, not {spacing!r}.")
    return "epss" if spacing == "epss" and steps in EPSS else "uniform"


def time_grid(
    steps: int, spacing: str = "epss", sway: float = -1.0, cosine: Callable[[np.ndarray], np.ndarray] = np.cos
) -> np.ndarray:
    """The ``steps + 1`` times from 0 (noise) to 1 (speech), float32. ``sway`` bends the grid, t + sway * (cos(pi t / 2)
    - 1 + t): negative values crowd it towards 0; 0 changes nothing. ``cosine`` is the float32 cosine: torch's, which
    the official code uses, differs from numpy's by a unit in the last place;
    :func:`paretone.sampling.flow.sampling_grid` gives the official grid to the last bit."""
    if steps < 1:
        raise SettingError(f"The number of steps must be at least 1, not {steps}.")
    if effective_spacing(steps, spacing) == "epss":
        times = np.array(EPSS[steps], dtype=np.float32) / np.float32(32)
    else:
        times = uniform_times(steps)
    if sway:
        times = times + np.float32(sway) * (cosine(np.float32(np.pi / 2) * times) - np.float32(1) + times)
    if np.any(np.diff(times) <= 0):
        raise SettingError(
            f"A sway coefficient of {sway:g} makes time run backwards on this grid; choose a value between -1 and 1."
        )
    return times


def uniform_times(steps: int) -> np.ndarray:
    """Evenly spaced times, rounded like torch's ``linspace``: from either end to the middle, with a float32 step and
    one rounding per time. numpy's differ by a unit in the last place."""
    step = np.float64(np.float32(1) / np.float32(steps))
    index = np.arange(steps + 1)
    return np.where(index < (steps + 1) // 2, step * index, 1 - step * (steps - index)).astype(np.float32)


def first_halved(times: np.ndarray) -> np.ndarray:
    """``times`` with the middle of the first step inserted, for a first step of two evaluations."""
    return np.insert(times, 1, times[0] + np.float32(0.5) * (times[1] - times[0]))


def evaluation_times(times: np.ndarray, solver: str) -> np.ndarray:
    """Times at which a solver evaluates the velocity, in order: one per step for Euler, two for midpoint."""
    if solver == "euler":
        return times[:-1]
    if solver == "midpoint":
        starts, halves = times[:-1], times[:-1] + np.diff(times) * np.float32(0.5)
        return np.stack([starts, halves], axis=1).reshape(-1)
    raise SettingError(f"The solver must be euler or midpoint, not {solver!r}.")


def evaluations(options: Mapping[str, Any]) -> int:
    return options["steps"] * (2 if options.get("solver") == "midpoint" else 1)
