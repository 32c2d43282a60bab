"""Options that models which fill in masked codes have in common, as knobs. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from paretone.sampling.options import STEPS
from paretone.setting.knobs import Number, Switch

MASKED_STEPS = replace(
    STEPS,
    meaning="Number of steps in which a canvas is filled in; the network runs once per step.",
    trajectory=False,
)

GUIDANCE = Number(
    "guidance",
    "Guidance",
    "Strength of classifier-free guidance, among log-probabilities: c + g·(c − u). 0 runs one branch only.",
    default=2.0,
    symbol="g",
    minimum=0.0,
    maximum=10.0,
    step=0.1,
)

SHIFT = Number(
    "shift",
    "Schedule",
    "Below 1, few codes are committed at first and many at the end; at 1, equally many per step.",
    default=0.1,
    symbol="τ",
    minimum=0.01,
    maximum=2.0,
    step=0.05,
)

LAYER_PENALTY = Number(
    "layer_penalty",
    "Codebook penalty",
    "How much later each further codebook is filled in; 0: all together.",
    default=5.0,
    minimum=0.0,
    maximum=20.0,
    step=0.5,
)

POSITION_TEMPERATURE = Number(
    "position_temperature",
    "Order temperature",
    "Randomness of the fill order; 0: always the most confident cells first.",
    default=5.0,
    symbol="T",
    minimum=0.0,
    maximum=20.0,
    step=0.5,
)

CLASS_TEMPERATURE = Number(
    "class_temperature",
    "Code temperature",
    "Sampling temperature among the most likely tenth of codes; 0 always takes the most likely.",
    default=0.0,
    minimum=0.0,
    maximum=2.0,
    step=0.05,
)

BY_SENTENCE = Switch(
    "by_sentence",
    "One sentence at a time",
    "Speak every sentence separately, so that the first plays sooner. Off: fill in as much as the model can at once.",
    default=False,
)

DEMASKING_OPTIONS = (
    MASKED_STEPS,
    GUIDANCE,
    SHIFT,
    LAYER_PENALTY,
    POSITION_TEMPERATURE,
    CLASS_TEMPERATURE,
    BY_SENTENCE,
)
"""Those that :class:`paretone.models.families.masked.MaskedSpeech` itself reads; every masked model has them."""
