"""The sampler options of the bundled language model, and what is fixed about it. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from engine.knobs import Number
from engine.sampling.options import CROSS_FADE, SPEED

SAMPLE_RATE = 24000
HOP = 256
"""Samples of a mel frame."""

TEMPERATURE = Number(
    "temperature",
    "Temperature",
    "How evenly the model draws among its candidates; 0 always takes the likeliest.",
    default=0.8,
    symbol="T",
    minimum=0.0,
    maximum=2.0,
    step=0.05,
)

TOP_K = Number(
    "top_k",
    "Candidates",
    "Draws among so many of the likeliest tokens.",
    default=25,
    symbol="k",
    minimum=1,
    maximum=1000,
    whole=True,
)

TOP_P = Number(
    "top_p",
    "Nucleus",
    "Draws among the likeliest tokens that together have this probability.",
    default=1.0,
    symbol="p",
    minimum=0.05,
    maximum=1.0,
    step=0.05,
)

REPETITION_PENALTY = Number(
    "repetition_penalty",
    "Repetition penalty",
    "Makes tokens that came before less likely; 1 leaves them alone.",
    default=1.0,
    minimum=1.0,
    maximum=2.0,
    step=0.05,
)

OPTIONS = (TEMPERATURE, TOP_K, TOP_P, REPETITION_PENALTY, SPEED, replace(CROSS_FADE, default=0.02))
"""Knobs of the bundled language model. Passages meet in a pause, where a short fade is enough."""
