"""The sampler options of the bundled models with tokens. Torch-free.

Passages meet in a pause, where a short fade is enough."""

from __future__ import annotations

from dataclasses import replace

from paretone.sampling.options import (
    CROSS_FADE,
    DEMASKING_OPTIONS,
    REPETITION_PENALTY,
    SPEED,
    TEMPERATURE,
    TOP_K,
    TOP_P,
)

_SHORT_FADE = replace(CROSS_FADE, default=0.02)
LM_MINI_OPTIONS = (TEMPERATURE, TOP_K, TOP_P, REPETITION_PENALTY, SPEED, _SHORT_FADE)
OMNI_MINI_OPTIONS = (*DEMASKING_OPTIONS, SPEED, _SHORT_FADE)
