"""Forecast: DiTReducio's temporal skipping with the skipped output extrapolated instead of reused.

Not a separate technique but an option of DiTReducio: the skipped modules are in a strategy table, and a table is
calibrated for the one way or for the other. What it does and how it differs from its sources:
:mod:`paretone.sampling.actions`.
"""

from __future__ import annotations

from paretone.setting.knobs import Choice, Effect

TEMPORAL_VARIANTS = ("reuse", "forecast")
"""Outputs of temporal skips: that of the last computed step (the paper), or a first-order extrapolation from the last
two computed ones (ours)."""

TEMPORAL = Choice(
    "temporal",
    "Skipped output",
    "What a temporal skip takes a module's output to be: the last one again, or a first-order forecast from the last "
    "two, after TaylorSeer (arXiv 2503.06923) and Adams–Bashforth.",
    default="reuse",
    effect=Effect.AFTER_CALIBRATION,
    values=TEMPORAL_VARIANTS,
    titles=("Reuse (paper)", "Forecast (ours, after TaylorSeer)"),
)
"""The knob of DiTReducio that chooses."""
