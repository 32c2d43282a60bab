"""Constants and options of CosyVoice 2. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from paretone.extras import how_to_add
from paretone.sampling.options import SPEED, TOP_K, TOP_P
from paretone.setting.knobs import Choice, Switch, Text

INSTALL = how_to_add("cosyvoice")
LEAST_TOKENS, MOST_TOKENS = 2.0, 20.0
"""Speech tokens for each token of text, at least and at most: speech cannot end before, and is cut off after."""
USUAL_TOKENS = 7.5
"""Speech tokens for each token of text where no transcript says otherwise: ten tokens of text in three seconds."""
FASTEST_TRANSCRIPT, SLOWEST_TRANSCRIPT = 2.5, 25.0
"""Speech tokens for each token of the transcript outside of which it cannot be what a recording says: ten tokens a
second, and one."""

ZERO_SHOT, CROSS_LINGUAL, INSTRUCT = "zero_shot", "cross_lingual", "instruct"
MODE = Choice(
    "mode",
    "Mode",
    "Zero-shot continues the recording and needs its transcript; cross-lingual takes only the voice from it, for texts "
    "in another language; with an instruction, it takes only the voice and follows the instruction.",
    default=ZERO_SHOT,
    values=(ZERO_SHOT, CROSS_LINGUAL, INSTRUCT),
    titles=("Zero-shot", "Cross-lingual", "With an instruction"),
)

INSTRUCTION = Text(
    "instruction",
    "Instruction",
    "Instruction for the mode “With an instruction”, such as “Speak softly and slowly.”",
    default="",
)

REPEATS = Choice(
    "repeats",
    "Repeated tokens",
    "A token among the last ten is resampled from all; since 2026 the release excludes the repeated one. "
    "Papers from before used the older rule.",
    default="2026",
    values=("2026", "2025"),
    titles=("Another one (2026)", "Any one (2025)"),
)

STREAM = Switch(
    "stream",
    "Streaming",
    "Decode audio for every second of speech tokens as they arrive. Off: decode the same audio at the end, "
    "with less time and memory. Streaming keeps 230 MB for each of the first ten seconds of recording and "
    "speech, and 57 MB for each later one.",
    default=True,
)

OPTIONS = (
    MODE,
    INSTRUCTION,
    replace(TOP_P, default=0.8),
    TOP_K,
    REPEATS,
    replace(SPEED, meaning=f"{SPEED.meaning} At a speed other than 1, audio starts only at the end."),
    STREAM,
)
