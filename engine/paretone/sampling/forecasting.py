"""Forecasting what a skipped module would have returned, where a strategy table says so.

Ours, after TaylorSeer (Liu et al., arXiv 2503.06923) of order one and the two-step Adams–Bashforth rule: a skipped
output is not the last one again, but that one moved on at the rate at which the last two computed ones differ. What
differs from TaylorSeer: the step lengths of the grid are taken into account (an EPSS grid is uneven), which modules are
skipped is a calibrated table's choice instead of every n steps, and that table was calibrated with forecasts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paretone.sampling.actions import SkipAction


def extrapolation_factors(row: Sequence[SkipAction], times: Sequence[float]) -> list[float]:
    """Extrapolation factor of every temporal skip of one layer: the time since the last computed step over the time
    between that and the one computed before; 0 if only one has been computed, and at steps that are not skipped.

    ``times`` has at least one value for each step of ``row``.
    """
    found, last, before = [], 0, None
    for step, action in enumerate(row):
        if action is SkipAction.TS:
            found.append(extrapolation_factor(times, step, last, before))
            continue
        found.append(0.0)
        last, before = step, (last if step else None)
    return found


def extrapolation_factor(times: Sequence[float] | np.ndarray, step: int, last: int | None, before: int | None) -> float:
    """Extrapolation factor of a skip at ``step``: its time since the ``last`` computed step, over the time between that
    and the one ``before`` it; 0 if there was none."""
    if last is None or before is None:
        return 0.0
    return float((times[step] - times[last]) / (times[last] - times[before]))
