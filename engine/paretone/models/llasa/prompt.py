"""The prompt that LLaSA continues: the chat template of Llama 3.2 Instruct around a text, up to where speech begins.

The template of the release writes today's date into it, so that the same seed speaks otherwise tomorrow. Here the date
is the one that the template falls back on.
"""

from __future__ import annotations

from paretone.errors import TextError

DATE = "26 Jul 2024"
TEXT_START, TEXT_END = "<|TEXT_UNDERSTANDING_START|>", "<|TEXT_UNDERSTANDING_END|>"
SPEECH_START, SPEECH_END = "<|SPEECH_GENERATION_START|>", "<|SPEECH_GENERATION_END|>"
_HEADER = "<|start_header_id|>{role}<|end_header_id|>\n\n"
_END_OF_TURN = "<|eot_id|>"
_OPENING, _CLOSING = "<|", "|>"


def rendered(text: str, transcript: str = "", date: str = DATE, speaker: str = "") -> str:
    """The prompt for ``text``. With the ``transcript`` of a reference, its codes are to follow the prompt, and the
    model continues where the reference ends. ``speaker`` is one of those that a checkpoint was fine-tuned on.

    Raises :class:`TextError` if a text holds what the model would read as one of its control tokens.
    """
    for one in (transcript, text, speaker):
        start = one.find(_OPENING)
        end = one.find(_CLOSING, start)
        if start >= 0 and end >= 0:
            raise TextError(f"{one[start : end + 2]!r} is a control token of LLaSA and cannot be spoken; leave it out.")
    spoken = f"{transcript} {text}" if transcript else text
    return "".join(
        (
            "<|begin_of_text|>",
            _HEADER.format(role="system"),
            f"Cutting Knowledge Date: December 2023\nToday Date: {date}\n\n",
            _END_OF_TURN,
            _HEADER.format(role="user"),
            f"Convert the text to speech:{TEXT_START}{spoken}{TEXT_END}",
            _END_OF_TURN,
            _HEADER.format(role="assistant"),
            f"Speaker {speaker} " if speaker else "",
            SPEECH_START,
        )
    )
