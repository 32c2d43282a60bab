"""What is fixed about OmniVoice as a speaker, and its options. Torch-free."""

from __future__ import annotations

from engine.sampling.masked_options import DEMASKING_OPTIONS
from engine.sampling.options import SPEED
from engine.setting.knobs import Number, Switch, Text

INSTALL = "install it with: pip install paretone[omnivoice]"
FRAME_RATE = 25
"""Frames a second."""
LONGEST_CANVAS, CHUNK = 30.0, 15.0
"""Seconds that a text may be expected to take to be spoken on one canvas, and of the chunks of a longer one."""
LONGEST_TOLD = 600.0
"""Seconds that the user may ask for."""
LONGEST_REFERENCE = 20.0
"""Seconds behind which upstream warns of a reference."""
SLOWEST, FASTEST = 4.0, 40.0
"""Latin letters a second (see :mod:`engine.models.omnivoice.duration`) between which a transcript fits a recording."""

CLONE = Switch(
    "clone",
    "Speak in the voice",
    "Continues the chosen recording; off lets OmniVoice speak in a voice of its own, or as described below.",
    default=True,
)

LANGUAGE = Text(
    "language",
    "Language",
    "What the text is in: an id such as en, zh or ja, or an English name, of 646 languages; empty: OmniVoice is not "
    "told. It speaks slightly better when it is.",
    default="",
)

INSTRUCT = Text(
    "instruct",
    "Description of the voice",
    "Such as “female, low pitch” or “male, british accent”: gender, age, pitch, whisper, accent of English, or dialect "
    "of Chinese; empty: none.",
    default="",
)

DURATION = Number(
    "duration",
    "Duration",
    "How long the speech is to last, in seconds; 0 estimates it from the text at the pace of the recording. Decides "
    "over the speed.",
    default=0.0,
    unit="s",
    minimum=0.0,
    maximum=LONGEST_TOLD,
    step=0.5,
)

DENOISE = Switch(
    "denoise",
    "Ask for clean sound",
    "Tells OmniVoice to leave noise and echo of the recording out.",
    default=True,
)

PREPARE = Switch(
    "prepare",
    "Prepare the recording",
    "Cuts long pauses and silence at its ends, as upstream does.",
    default=True,
)

POST_PROCESS = Switch(
    "post_process",
    "Cut silence",
    "Cuts long pauses and silence at the ends of the speech, as upstream does. Not while it is streamed in blocks.",
    default=True,
)

OPTIONS = (
    *DEMASKING_OPTIONS,
    CLONE,
    LANGUAGE,
    INSTRUCT,
    SPEED,
    DURATION,
    DENOISE,
    PREPARE,
    POST_PROCESS,
)
