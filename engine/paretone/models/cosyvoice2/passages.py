"""Passages of CosyVoice 2: voice and instruction or transcript, followed by one piece of text.

Modes of ``cli/cosyvoice.py``: in *zero-shot* the language model reads the transcript and continues the recording; in
*cross-lingual* it is given neither, in *instruct* it reads an instruction instead. The flow hears the recording always.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from paretone.errors import AudioError, TextError
from paretone.front_end.numbers import spell_numbers
from paretone.models.base import Voice
from paretone.models.cosyvoice2.config import (
    FASTEST_TRANSCRIPT,
    INSTRUCT,
    INSTRUCTION,
    LEAST_TOKENS,
    MODE,
    MOST_TOKENS,
    SLOWEST_TRANSCRIPT,
    USUAL_TOKENS,
    ZERO_SHOT,
)
from paretone.models.cosyvoice2.language_model import PromptIds
from paretone.models.cosyvoice2.prompts import VoicePrompt
from paretone.models.cosyvoice2.text import normalised, read_text
from paretone.models.cosyvoice2.tokenizer import END_OF_PROMPT, TextTokenizer
from paretone.models.families.voices import transcript_notes

_INSTRUCTED = f"“{MODE.titles[MODE.values.index(INSTRUCT)]}”"
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
    text: str, mode: str, instruction: str, voice: Voice, heard: VoicePrompt, tokenizer: TextTokenizer
) -> tuple[CosyPrompt, CosyPassages]:
    """``text`` after the ``voice`` that was ``heard``; ``instruction`` says how to speak where ``mode`` asks for that.

    Raises :class:`TextError` for an instruction that is missing or within the text, and :class:`AudioError` for a
    recording whose transcript is needed but missing.
    """
    instructed = _instructed(text, mode, instruction)
    read = read_text(text, tokenizer.count)
    if mode == ZERO_SHOT:
        prompt = _continued(voice, heard, tokenizer)
    else:
        prompt = CosyPrompt(heard, PromptIds(tuple(tokenizer.encode(instructed))), heard.notes)
    passages = tuple(_passage(piece, prompt, tokenizer) for piece in read.pieces)
    notes, length = read.notes, sum(len(passage.ids) for passage in passages)
    if prompt.ids.speech and length < SHORT_TEXT * len(prompt.ids.text):
        notes = *notes, "The text is much shorter than the recording's transcript, which may make it sound worse."
    if instruction.strip() and mode != INSTRUCT:
        notes = *notes, f"The instruction was ignored: choose the mode {_INSTRUCTED}."
    return prompt, CosyPassages(passages, notes)


def _instructed(text: str, mode: str, instruction: str) -> str:
    """Text in place of a transcript: the instruction with the mark after it, or nothing."""
    instruction = instruction.strip()
    if END_OF_PROMPT in text or END_OF_PROMPT in instruction:
        raise TextError(
            f"{END_OF_PROMPT} is inserted automatically; leave it out, write how to speak into the option "
            f"“{INSTRUCTION.title}”, and choose {_INSTRUCTED} as the mode."
        )
    if mode != INSTRUCT:
        return ""
    if not instruction:
        raise TextError(f"There is no instruction; write how to speak into the option “{INSTRUCTION.title}”.")
    return instruction + END_OF_PROMPT


def _continued(voice: Voice, heard: VoicePrompt, tokenizer: TextTokenizer) -> CosyPrompt:
    transcript, _ = normalised(voice.transcript)
    ids = tokenizer.encode(transcript)
    if not ids:
        error = AudioError(
            f"Zero-shot needs a transcript of the recording {voice.audio}; type it, or choose the mode “Cross-lingual”."
        )
        error.lacks_transcript = True
        raise error
    ratio = len(heard.tokens) / len(ids)
    mismatch = ""
    if not FASTEST_TRANSCRIPT <= ratio <= SLOWEST_TRANSCRIPT:
        amount = "long" if ratio < FASTEST_TRANSCRIPT else "short"
        mismatch = (
            f"The transcript is too {amount} for the recording's {heard.seconds:.1f} s; if they do not "
            "match, CosyVoice 2 repeats, drops or invents words."
        )
    notes = (*heard.notes, *transcript_notes(voice, mismatch))
    return CosyPrompt(heard, PromptIds(tuple(ids), heard.tokens), notes)


def _passage(text: str, prompt: CosyPrompt, tokenizer: TextTokenizer) -> CosyPassage:
    ids = tuple(tokenizer.encode(text))
    # Digits that were not written out take longer than they look.
    spoken = tokenizer.count(spell_numbers(text)) if any(map(str.isdigit, text)) else len(ids)
    return CosyPassage(text.strip(), ids, max(1, round(prompt.tokens_per_text * max(spoken, len(ids)))))
