"""Actions of a layer at a step (compute, reuse or share), and forecasts of skipped outputs. Torch-free.

Forecasting is ours, after TaylorSeer (Liu et al., arXiv 2503.06923) of order one and the two-step Adams–Bashforth rule:
instead of repeating the last output, a skip extrapolates it linearly from the last two computed outputs. Unlike
TaylorSeer, the factor follows the grid's step lengths (an EPSS grid is uneven), and a table calibrated with forecasts
chooses the skipped modules, not a fixed interval of n steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np


class SkipAction(IntEnum):
    """Action of a layer at a step. Official strategy tables write these names."""

    NONE = 0
    """Compute both modules for all branches."""
    TS = 1
    """Temporal skipping: both modules return their output of the last step that computed them."""
    BS = 2
    """Branch skipping: compute branch 0; the others follow by their last residual."""


def extrapolation_factors(row: Sequence[SkipAction], times: Sequence[float]) -> list[float]:
    """Extrapolation factor of each temporal skip of one layer: the time since the last computed step over the time
    between the last two computed steps; 0 if only one was computed, and at steps without a skip. ``times`` has at least
    one value per step of ``row``."""
    found, last, before = [], 0, None
    for step, action in enumerate(row):
        if action is SkipAction.TS:
            found.append(extrapolation_factor(times, step, last, before))
            continue
        found.append(0.0)
        last, before = step, (last if step else None)
    return found


def extrapolation_factor(times: Sequence[float] | np.ndarray, step: int, last: int | None, before: int | None) -> float:
    """Extrapolation factor of a skip at ``step``: time since the ``last`` computed step over the time between that and
    the computed step ``before`` it; 0 without two computed steps."""
    if last is None or before is None:
        return 0.0
    return float((times[step] - times[last]) / (times[last] - times[before]))
