"""LLaSA's tokenizer: Llama's, with marks for text and speech and one token per code of XCodec2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from paretone.errors import TextError
from paretone.models.families.language_network import IGNORED, TrainingRow
from paretone.models.files.checkpoints import read_tokenizer
from paretone.models.llasa.config import INSTALL

if TYPE_CHECKING:
    from tokenizers import Tokenizer


# The prompt that LLaSA continues: the chat template of Llama 3.2 Instruct around a text, up to the start of speech.
#
# The release's template contains today's date, so the same seed would speak differently tomorrow. Here the date is the
# template's default.
DATE = "26 Jul 2024"
TEXT_START, TEXT_END = "<|TEXT_UNDERSTANDING_START|>", "<|TEXT_UNDERSTANDING_END|>"
SPEECH_START, SPEECH_END = "<|SPEECH_GENERATION_START|>", "<|SPEECH_GENERATION_END|>"
_HEADER = "<|start_header_id|>{role}<|end_header_id|>\n\n"
_END_OF_TURN = "<|eot_id|>"
_OPENING, _CLOSING = "<|", "|>"


def rendered(text: str, transcript: str = "", speaker: str = "") -> str:
    """The prompt for ``text``. With the ``transcript`` of a reference, its codes follow the prompt, and the model
    continues from the end of the reference. ``speaker`` is one of a fine-tuned checkpoint's speakers.

    Raises :class:`TextError` for a control token in a text.
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
            f"Cutting Knowledge Date: December 2023\nToday Date: {DATE}\n\n",
            _END_OF_TURN,
            _HEADER.format(role="user"),
            f"Convert the text to speech:{TEXT_START}{spoken}{TEXT_END}",
            _END_OF_TURN,
            _HEADER.format(role="assistant"),
            f"Speaker {speaker} " if speaker else "",
            SPEECH_START,
        )
    )


@dataclass(frozen=True)
class LlasaTokenizer:
    tokenizer: Tokenizer
    first_code: int
    """Id of code 0; the others follow it."""
    codes: int
    """Number of codes in the vocabulary."""
    end: int
    """Id of the end of speech."""

    @classmethod
    def read(cls, folder: Path) -> LlasaTokenizer:
        """Read ``tokenizer.json``. Raises :class:`CheckpointError` if package, file or tokens are missing."""
        marks = (TEXT_START, TEXT_END, SPEECH_START, SPEECH_END, code_token(0))
        tokenizer = read_tokenizer(folder, "LLaSA", INSTALL, marks)
        first, end = (cast("int", tokenizer.token_to_id(one)) for one in (code_token(0), SPEECH_END))
        codes = 1
        while tokenizer.token_to_id(code_token(codes)) == first + codes:
            codes += 1
        return cls(tokenizer, first, codes, end)

    @property
    def vocabulary(self) -> int:
        """Least number of ids; codes are the last."""
        return self.first_code + self.codes

    def ids(self, prompt: str) -> list[int]:
        """Ids of a prompt, which includes the beginning of text."""
        return self.tokenizer.encode(prompt, add_special_tokens=False).ids


def code_token(code: int) -> str:
    """Name of a code of XCodec2 in the vocabulary."""
    return f"<|s_{code}|>"


# LLaSA's training format: a conversation in which the user asks for a text and the assistant answers in speech.
#
# Follows ``train_tts.py`` of the training code, which also predicts the start of speech and the end of the assistant's
# turn; neither is ever sampled here, so the trained head has no rows for them.


def training_row(tokenizer: LlasaTokenizer, text: str, speech: Sequence[int]) -> TrainingRow:
    """The prompt for ``text``, and ``speech`` up to its end. Raises :class:`TextError` like :func:`rendered`."""
    prompt = tokenizer.ids(rendered(text))
    ids = (*prompt, *(tokenizer.first_code + code for code in speech))
    # The first code is predicted at the prompt's last token, the end after the last code.
    return TrainingRow(ids, (IGNORED,) * (len(prompt) - 1) + (*speech, tokenizer.codes))
