"""Actions of a layer at a step: compute, reuse or share; and forecasts of what a skipped module would have returned,
if a strategy table says so. Torch-free.

Forecasting is ours, after TaylorSeer (Liu et al., arXiv 2503.06923) of order one and the two-step Adams–Bashforth rule:
a skipped output is not the last one again, but that one moved on at the rate at which the last two computed ones
differ. What differs from TaylorSeer: the step lengths of the grid are taken into account (an EPSS grid is uneven),
which modules are skipped is a calibrated table's choice instead of every n steps, and that table was calibrated with
forecasts.
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
    """Temporal skipping: both modules return what they returned at the last step that computed them."""
    BS = 2
    """Branch skipping: compute branch 0; the others follow by their last residual."""


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
