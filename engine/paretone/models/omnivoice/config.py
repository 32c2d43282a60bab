"""Constants and options of OmniVoice. Torch-free."""

from __future__ import annotations

from paretone.extras import how_to_add
from paretone.sampling.options import DEMASKING_OPTIONS, SPEED
from paretone.setting.knobs import Switch, Text, amount

LAYOUT = "omnivoice"
"""Layout of the official checkpoint, in declarations."""
INSTALL = how_to_add("omnivoice")
FRAME_RATE = 25
LONGEST_CANVAS, CHUNK = 30.0, 15.0
"""Maximum expected seconds of a text on one canvas, and of the chunks of a longer one."""
LONGEST_TOLD = 600.0
"""Maximum requested seconds."""
LONGEST_REFERENCE = 20.0
"""Seconds above which upstream warns of a long reference."""
SLOWEST, FASTEST = 4.0, 40.0
"""Bounds of Latin letters per second (:mod:`paretone.models.omnivoice.text`) of a fitting transcript."""

OPTIONS = (
    *DEMASKING_OPTIONS,
    Switch(
        "clone",
        "Clone the voice",
        "Continue the chosen recording. Off: OmniVoice invents a voice, or follows the description below.",
        default=True,
    ),
    Text(
        "language",
        "Language",
        "Language of the text: an id such as en, zh or ja, or an English name, of 646 languages. Leave empty if "
        "unknown; OmniVoice speaks slightly better with it.",
        default="",
    ),
    Text(
        "instruct",
        "Voice description",
        "For example “female, low pitch” or “male, british accent”: gender, age, pitch, whisper, English accent or "
        "dialect of Chinese. Leave empty for none.",
        default="",
    ),
    SPEED,
    amount(
        "duration",
        "Duration",
        "Duration of the speech in seconds; 0: estimate it from the text at the pace of the recording. Overrides "
        "the speed.",
        default=0.0,
        between=(0.0, LONGEST_TOLD),
        unit="s",
        step=0.5,
    ),
    Switch("denoise", "Clean sound", "Ask OmniVoice to leave out noise and echo of the recording.", default=True),
    Switch("prepare", "Trim the recording", "Cut long pauses and silence at its ends, as upstream.", default=True),
    Switch(
        "post_process",
        "Trim silence",
        "Cut long pauses and silence at the ends of the speech, as upstream. Not in blockwise streaming.",
        default=True,
    ),
)
