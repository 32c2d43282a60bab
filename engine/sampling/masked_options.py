"""Options that models which fill in masked codes have in common, as knobs. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from engine.sampling.options import STEPS
from engine.setting.knobs import Number, Switch

MASKED_STEPS = replace(
    STEPS,
    meaning="Number of steps in which a canvas is filled in; the network runs once a step.",
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
    "Below 1 few codes are committed at first and many at the end; at 1 every step commits as many.",
    default=0.1,
    symbol="τ",
    minimum=0.01,
    maximum=2.0,
    step=0.05,
)

LAYER_PENALTY = Number(
    "layer_penalty",
    "Codebook penalty",
    "How much later each further codebook is filled in; at 0 all are at once.",
    default=5.0,
    minimum=0.0,
    maximum=20.0,
    step=0.5,
)

POSITION_TEMPERATURE = Number(
    "position_temperature",
    "Order temperature",
    "How much chance decides what is filled in next; 0: always what the model is surest of.",
    default=5.0,
    symbol="T",
    minimum=0.0,
    maximum=20.0,
    step=0.5,
)

CLASS_TEMPERATURE = Number(
    "class_temperature",
    "Code temperature",
    "How evenly codes are drawn among the likeliest tenth; 0 always takes the likeliest.",
    default=0.0,
    minimum=0.0,
    maximum=2.0,
    step=0.05,
)

BY_SENTENCE = Switch(
    "by_sentence",
    "Sentence by sentence",
    "Speaks every sentence for itself, so that the first is heard sooner; off fills in as much as the model can at "
    "once.",
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
"""Those that :class:`engine.models.families.masked.MaskedSpeech` itself reads; every masked model has them."""
