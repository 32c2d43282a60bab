"""The sampler options of the bundled language model, and what is fixed about it. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from paretone.sampling.options import CROSS_FADE, REPETITION_PENALTY, SPEED, TEMPERATURE, TOP_K, TOP_P

OPTIONS = (TEMPERATURE, TOP_K, TOP_P, REPETITION_PENALTY, SPEED, replace(CROSS_FADE, default=0.02))
"""Knobs of the bundled language model. Passages meet in a pause, where a short fade is enough."""
