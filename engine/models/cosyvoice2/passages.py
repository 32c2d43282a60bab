"""What CosyVoice 2 speaks at once: a voice and an instruction or transcript in front, one piece of text behind.

Modes of ``cli/cosyvoice.py``: in *zero-shot* the language model reads the transcript and continues the recording; in
*cross-lingual* it is given neither, in *instruct* it reads an instruction instead. The flow hears the recording always.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.errors import AudioError, TextError
from engine.models.base import Voice
from engine.models.cosyvoice2.config import (
    FASTEST_TRANSCRIPT,
    INSTRUCT,
    LEAST_TOKENS,
    MODE,
    MOST_TOKENS,
    SLOWEST_TRANSCRIPT,
    USUAL_TOKENS,
    ZERO_SHOT,
)
from engine.models.cosyvoice2.language_model import PromptIds
from engine.models.cosyvoice2.prompts import VoicePrompt
from engine.models.cosyvoice2.text import normalised, read_text
from engine.models.cosyvoice2.tokenizer import END_OF_PROMPT, TextTokenizer

SHORT_TEXT = 0.5
"""Share of the transcript's length below which upstream warns of a text."""


@dataclass(frozen=True)
class CosyPrompt:
    """A voice made ready, and what the language model reads of it."""

    voice: VoicePrompt = field(repr=False)
    ids: PromptIds
    notes: tuple[str, ...] = ()

    @property
    def tokens_per_text(self) -> float:
        """Speech tokens that a token of text is expected to take."""
        if not (self.ids.text and self.ids.speech):
            return USUAL_TOKENS
        return min(max(len(self.ids.speech) / len(self.ids.text), LEAST_TOKENS), MOST_TOKENS)


@dataclass(frozen=True)
class CosyPassage:
    """One piece of text."""

    text: str
    ids: tuple[int, ...] = field(repr=False)
    expected: int
    """Speech tokens that it will probably take."""


@dataclass(frozen=True)
class CosyPassages:
    """A whole text, and what the user should know about it."""

    passages: tuple[CosyPassage, ...]
    notes: tuple[str, ...] = ()


def prepare(
    text: str, mode: str, voice: Voice, heard: VoicePrompt, tokenizer: TextTokenizer
) -> tuple[CosyPrompt, CosyPassages]:
    """``text`` behind the ``voice`` that was ``heard``.

    Raises :class:`TextError` for a text that does not go with ``mode``, and :class:`AudioError` for a recording whose
    transcript is needed but missing.
    """
    instruction, spoken = _divided(text, mode)
    read = read_text(spoken, tokenizer.count)
    if mode == ZERO_SHOT:
        prompt = _continued(voice, heard, tokenizer)
    else:
        prompt = CosyPrompt(heard, PromptIds(tuple(tokenizer.encode(instruction))), heard.notes)
    passages = tuple(_passage(piece, prompt, tokenizer) for piece in read.pieces)
    notes, length = read.notes, sum(len(passage.ids) for passage in passages)
    if prompt.ids.speech and length < SHORT_TEXT * len(prompt.ids.text):
        notes = *notes, "The text is much shorter than the recording's transcript, which may make it sound worse."
    return prompt, CosyPassages(passages, notes)


def _divided(text: str, mode: str) -> tuple[str, str]:
    """The instruction with the mark behind it, and the rest."""
    instruction, mark, spoken = text.rpartition(END_OF_PROMPT)
    if bool(mark) != (mode == INSTRUCT):
        what = "with an instruction" if mark else "without an instruction"
        do = (
            f"choose “{MODE.titles[MODE.values.index(INSTRUCT)]}” as the mode"
            if mark
            else f"put it in front of the text, with {END_OF_PROMPT} between them, or choose another mode"
        )
        raise TextError(f"This is a text {what}, which the chosen mode does not speak; {do}.")
    if mark and not instruction.strip():
        raise TextError(f"There is no instruction in front of {END_OF_PROMPT}; say there how to speak.")
    return instruction.strip() + mark, spoken


def _continued(voice: Voice, heard: VoicePrompt, tokenizer: TextTokenizer) -> CosyPrompt:
    transcript, _ = normalised(voice.transcript)
    ids = tokenizer.encode(transcript)
    if not ids:
        raise AudioError(
            f"Zero-shot needs what the recording {voice.audio} says; type its transcript, or choose the mode "
            "“Cross-lingual”."
        )
    ratio = len(heard.tokens) / len(ids)
    notes = heard.notes
    if not FASTEST_TRANSCRIPT <= ratio <= SLOWEST_TRANSCRIPT:
        amount = "more" if ratio < FASTEST_TRANSCRIPT else "less"
        notes = (
            *notes,
            f"The transcript is {amount} than anybody says in the recording's {heard.seconds:.1f} s; where the two do "
            "not fit, CosyVoice 2 repeats, drops or invents words.",
        )
    return CosyPrompt(heard, PromptIds(tuple(ids), heard.tokens), notes)


def _passage(text: str, prompt: CosyPrompt, tokenizer: TextTokenizer) -> CosyPassage:
    ids = tuple(tokenizer.encode(text))
    return CosyPassage(text.strip(), ids, max(1, round(prompt.tokens_per_text * len(ids))))
