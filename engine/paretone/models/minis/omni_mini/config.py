"""The options of the bundled masked model, and what is fixed about it. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from paretone.sampling.options import CROSS_FADE, DEMASKING_OPTIONS, SPEED

OPTIONS = (*DEMASKING_OPTIONS, SPEED, replace(CROSS_FADE, default=0.02))
"""Knobs of the bundled masked model. Passages meet in a pause, where a short fade is enough."""
