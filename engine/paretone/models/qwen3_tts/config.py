"""Constants and options of Qwen3-TTS. Defaults are those of the releases' ``generation_config.json`` and of
``inference/qwen3_tts_model.py``, ``qwen-tts`` 0.1.1. Torch-free."""

from __future__ import annotations

from dataclasses import replace

from paretone.extras import how_to_add
from paretone.sampling.options import REPETITION_PENALTY, TEMPERATURE, TOP_K, TOP_P
from paretone.setting.knobs import Choice, Switch, Text, count

TITLE = "Qwen3-TTS"
INSTALL = how_to_add("qwen3tts")
BASE, CUSTOM_VOICE, VOICE_DESIGN = "base", "custom_voice", "voice_design"
"""Kinds of release, as ``config.json`` calls them."""
SPEAKERS = ("vivian", "serena", "uncle_fu", "dylan", "eric", "ryan", "aiden", "ono_anna", "sohee")
"""Named speakers of the releases, in upstream's order."""
DESCRIBED = "described"
"""Id of the voice that is described in words."""
CODES_PER_FRAME = 16
MOST_FRAMES = 8191
"""Upstream's ``max_new_tokens`` without the last id, which gets no frame."""
LONGEST_REFERENCE = 60.0
"""Maximum seconds of a recording. Upstream has no limit; this one bounds the prompt."""
LONGEST_PASSAGE = 30.0
"""Maximum expected seconds of a passage: within longer ones users hear the pace drift."""
LONGEST_DESCRIBED = 300.0
"""The same for a described voice, because every passage is spoken by a different one."""

CONTINUE = Switch(
    "continue",
    "Continue the recording",
    "Speak on after the recording, which needs its transcript: closest to the voice. Off: only the speaker's "
    "embedding is taken from it, and no transcript is needed.",
    default=True,
)
INSTRUCTION = Text(
    "instruction",
    "Instruction",
    "How to speak, such as “Speak very angrily.” Leave empty for none.",
    default="",
    longest=500,
)
DESCRIPTION = replace(
    INSTRUCTION,
    title="Description of the voice",
    meaning="Who speaks and how, such as “A calm old man with a deep voice, telling a story.” Each seed gives another "
    "voice of this kind.",
)
LANGUAGE = Choice(
    "language",
    "Language",
    "Language of the text; “Automatic” lets the model choose. A speaker of a dialect speaks it in Chinese texts.",
    default="auto",
    values=(
        *("auto", "chinese", "english", "german", "french", "spanish", "portuguese", "italian"),
        *("russian", "japanese", "korean"),
    ),
    titles=(
        *("Automatic", "Chinese", "English", "German", "French", "Spanish", "Portuguese", "Italian"),
        *("Russian", "Japanese", "Korean"),
    ),
)
STREAMED = Switch(
    "streamed_text",
    "Feed text while speaking",
    "Give the model one token of text with each frame. Off: all text precedes the speech.",
    default=True,
)
FRAMES_PER_CALL = count(
    "frames_per_call",
    "Frames per decoding call",
    "Frames (80 ms each) decoded to audio at a time. The audio is the same for every number: fewer start sooner, more "
    "take less time.",
    default=4,
    between=(1, 300),
)
_WITHIN = "for the codes of a frame after its first, which give the sound its details."
SAMPLING = (
    replace(
        TEMPERATURE,
        default=0.9,
        meaning="Sampling temperature of the first code of each frame; 0 always takes the likeliest.",
    ),
    replace(TOP_K, default=50),
    TOP_P,
    replace(REPETITION_PENALTY, default=1.05, meaning="Make repeated first codes less likely; 1 changes nothing."),
    replace(
        TEMPERATURE, name="inner_temperature", title="Inner temperature", default=0.9, meaning=f"Temperature {_WITHIN}"
    ),
    replace(TOP_K, name="inner_top_k", title="Inner top-k", default=50, meaning=f"Top-k {_WITHIN}"),
    replace(TOP_P, name="inner_top_p", title="Inner top-p", meaning=f"Top-p {_WITHIN}"),
)
_ALL_AT_ONCE = replace(STREAMED, default=False)
OPTIONS = {
    BASE: (CONTINUE, LANGUAGE, STREAMED, *SAMPLING, FRAMES_PER_CALL),
    CUSTOM_VOICE: (INSTRUCTION, LANGUAGE, _ALL_AT_ONCE, *SAMPLING, FRAMES_PER_CALL),
    VOICE_DESIGN: (DESCRIPTION, LANGUAGE, _ALL_AT_ONCE, *SAMPLING, FRAMES_PER_CALL),
}
"""By kind of release."""
