"""Knobs shared by several models: flow models, speech language models, masked models. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from paretone.sampling.schedules import SPACINGS
from paretone.setting.knobs import Choice, Switch, Text, amount, count

STEPS = count(
    "steps",
    "Steps",
    "Number of steps from noise to speech; the backbone runs once per step.",
    default=32,
    trajectory=True,
    between=(1, 128),
)

SPACING = Choice(
    "spacing",
    "Step grid",
    "EPSS places the steps where they matter (5, 6, 7, 10, 12 and 16 steps have tables); uniform spaces them evenly.",
    default="epss",
    trajectory=True,
    values=SPACINGS,
    titles=("EPSS where a table exists", "Uniform"),
)

SWAY = amount(
    "sway",
    "Sway",
    "Curvature of the grid: negative values place more steps near the noise.",
    default=-1.0,
    between=(-1.0, 1.0),
    trajectory=True,
    symbol="s",
    step=0.1,
)

SPEED = amount(
    "speed", "Speed", "Speaking rate: 2 halves the duration.", default=1.0, between=(0.3, 2.0), unit="×", step=0.05
)

CROSS_FADE = amount(
    "cross_fade",
    "Cross-fade",
    "Overlap of the chunks of a long text.",
    default=0.15,
    between=(0.0, 1.0),
    unit="s",
    step=0.01,
)

QUICK_START = Switch(
    "quick_start",
    "Quick start",
    "Shorten the first chunk of a long text for earlier audio. Off: cut as the official code.",
    default=True,
)

DATES = Choice(
    "dates",
    "Dates",
    "How numeric dates such as 3/4/2025 are read: month first (American) or day first (British).",
    default="american",
    values=("american", "british"),
    titles=("Month first", "Day first"),
    later=True,
)

PRONUNCIATIONS = Text(
    "pronunciations",
    "Pronunciations",
    "Words and how they are said, as a respelling or in IPA: “Paretone = PAIR-uh-tone; Nguyen = /wɪn/”. By default, "
    "your lexicon.",
    default="",
    longest=20_000,
    later=True,
)

READING = (DATES, PRONUNCIATIONS)
"""How the bundled models read English."""

TEMPERATURE = amount(
    "temperature",
    "Temperature",
    "Sampling temperature; 0 always takes the most likely token.",
    default=0.8,
    between=(0.0, 2.0),
    symbol="T",
    step=0.05,
)

TOP_K = count("top_k", "Top-k", "Sample from the k most likely tokens.", default=25, symbol="k", between=(1, 1000))

TOP_P = amount(
    "top_p",
    "Top-p",
    "Sample from the most likely tokens that together have this probability.",
    default=1.0,
    between=(0.05, 1.0),
    symbol="p",
    step=0.05,
)

REPETITION_PENALTY = amount(
    "repetition_penalty",
    "Repetition penalty",
    "Make repeated tokens less likely; 1 changes nothing.",
    default=1.0,
    between=(1.0, 2.0),
    step=0.05,
)


MASKED_STEPS = replace(
    STEPS, meaning="Number of steps in which a canvas is filled in; the network runs once per step.", trajectory=False
)

GUIDANCE = amount(
    "guidance",
    "Guidance",
    "Strength of classifier-free guidance, among log-probabilities: c + g·(c − u). 0 runs one branch only.",
    default=2.0,
    between=(0.0, 10.0),
    symbol="g",
    step=0.1,
)

SHIFT = amount(
    "shift",
    "Schedule",
    "Below 1, few codes are committed at first and many at the end; at 1, equally many per step.",
    default=0.1,
    between=(0.01, 2.0),
    symbol="τ",
    step=0.05,
)

LAYER_PENALTY = amount(
    "layer_penalty",
    "Codebook penalty",
    "How much later each further codebook is filled in; 0: all together.",
    default=5.0,
    between=(0.0, 20.0),
    step=0.5,
)

POSITION_TEMPERATURE = amount(
    "position_temperature",
    "Order temperature",
    "Randomness of the fill order; 0: always the most confident cells first.",
    default=5.0,
    between=(0.0, 20.0),
    symbol="T",
    step=0.5,
)

CLASS_TEMPERATURE = amount(
    "class_temperature",
    "Code temperature",
    "Sampling temperature among the most likely tenth of codes; 0 always takes the most likely.",
    default=0.0,
    between=(0.0, 2.0),
    step=0.05,
)

BY_SENTENCE = Switch(
    "by_sentence",
    "One sentence at a time",
    "Speak every sentence separately, so that the first plays sooner. Off: fill in as much as the model can at once.",
    default=False,
)

DEMASKING_OPTIONS = (MASKED_STEPS, GUIDANCE, SHIFT, LAYER_PENALTY, POSITION_TEMPERATURE, CLASS_TEMPERATURE, BY_SENTENCE)
"""Options that :class:`paretone.models.families.masked.MaskedSpeech` reads; every masked model has them."""
