"""Constants and options of LLaSA. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from paretone.extras import how_to_add
from paretone.sampling.options import REPETITION_PENALTY, TEMPERATURE, TOP_K, TOP_P
from paretone.setting.knobs import Switch, Text, count

CONTEXT = 2048
"""Tokens of prompt and speech in training; the model speaks no further."""
TOKEN_RATE = 50.0
"""Codes per second."""
INSTALL = how_to_add("llasa")
LONGEST_REFERENCE = 20.0
"""Maximum seconds of a reference: 1000 of the 2048 tokens."""
LONGEST_PASSAGE = 15.0
"""Maximum expected seconds of one passage."""

FIRST_CODES = 25
"""Maximum codes of the first streaming window, for an earlier start."""

OPTIONS = (
    Switch(
        "clone",
        "Clone the voice",
        "Continue the chosen recording. Off: LLaSA invents a voice, a different one for every seed.",
        default=True,
    ),
    Text(
        "speaker",
        "Speaker",
        "For checkpoints fine-tuned on several speakers: the name of one, written before the speech as "
        "“Speaker kore”. Leave empty for the released ones, which know no names.",
        default="",
        longest=40,
    ),
    replace(TEMPERATURE, meaning=f"{TEMPERATURE.meaning} The release speaks with 0.8."),
    replace(
        TOP_K,
        default=50,
        meaning="Sample from the k most likely codes. The release uses 50, although its card does not say so.",
    ),
    replace(
        TOP_P,
        meaning="Sample from the most likely codes that together have this probability; the release's later advice is "
        "0.95.",
    ),
    replace(
        REPETITION_PENALTY,
        meaning="Make repeated codes less likely; 1 changes nothing. Users report 1.05 to 1.2 against humming.",
    ),
    count(
        "stream_codes",
        "Streaming window",
        "Codes (20 ms each) decoded to audio at a time while the model continues; at most 25 the first time.",
        default=50,
        between=(10, 500),
        step=10,
    ),
    count(
        "stream_context",
        "Streaming context",
        "Codes of context decoded before a window: more are closer to decoding at once, and slower.",
        default=100,
        between=(0, 1000),
        step=10,
    ),
)
