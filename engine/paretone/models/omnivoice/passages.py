"""Passages of OmniVoice: a text, or a chunk of a long one, and the length of its canvas."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paretone.errors import SettingError, TextError
from paretone.models.omnivoice import duration
from paretone.models.omnivoice.config import CHUNK, FRAME_RATE, LONGEST_CANVAS
from paretone.models.omnivoice.tags import instruct, is_chinese, language
from paretone.models.omnivoice.text import chunks, is_spoken, sentences
from paretone.models.omnivoice.voices import OmniVoicePrompt
from paretone.setting.knobs import Values

MOST_STRETCHED = 5.0
"""Greatest factor between a requested and the estimated duration."""


@dataclass(frozen=True)
class OmniVoicePassage:
    """One piece of text."""

    text: str
    frames: int
    speed: float
    """Divisor of its estimated length."""
    language: str | None
    instruct: str | None

    def after(self, first: OmniVoicePassage) -> OmniVoicePassage:
        """The same as long as it takes at the pace of the ``first`` one."""
        return replace(self, frames=duration.frames(self.text, first.text, first.frames, self.speed))


@dataclass(frozen=True)
class OmniVoicePassages:
    """A whole text."""

    passages: tuple[OmniVoicePassage, ...]
    notes: tuple[str, ...] = ()


def prepare(text: str, prompt: OmniVoicePrompt, options: Values) -> OmniVoicePassages:
    """``text`` after ``prompt``.

    Raises :class:`TextError` for a text with nothing to speak, and :class:`SettingError` for a description or duration
    that cannot be.
    """
    text = text.strip()
    if not is_spoken(text):
        raise TextError("There is nothing to speak in this text; type a sentence.")
    language_id, notes = language(str(options["language"]))
    described = instruct(str(options["instruct"]), chinese=is_chinese(text))
    frames, speed = _length(text, prompt, options)
    pieces = [text]
    if options["by_sentence"]:
        pieces = [one for one in sentences(text) if is_spoken(one)]
    elif frames > LONGEST_CANVAS * FRAME_RATE:
        pieces = [one for one in chunks(text, int(CHUNK * FRAME_RATE * len(text) / frames)) if is_spoken(one)]
    lengths = [frames]
    if len(pieces) > 1:
        lengths = [duration.frames(one, prompt.transcript, prompt.frames, speed) for one in pieces]
    passages = (
        OmniVoicePassage(one, length, speed, language_id, described)
        for one, length in zip(pieces, lengths, strict=True)
    )
    return OmniVoicePassages(tuple(passages), notes)


def _length(text: str, prompt: OmniVoicePrompt, options: Values) -> tuple[int, float]:
    """Frames of the whole text, and the speed that results."""
    wanted = float(options["duration"])
    if not wanted:
        speed = float(options["speed"])
        return duration.frames(text, prompt.transcript, prompt.frames, speed), speed
    usual = duration.frames(text, prompt.transcript, prompt.frames)
    frames = max(1, int(wanted * FRAME_RATE))
    if not 1 / MOST_STRETCHED <= frames / usual <= MOST_STRETCHED:
        raise SettingError(
            f"A duration of {wanted:g} s is too far from what this text usually takes ({usual / FRAME_RATE:.1f} s): "
            f"choose {usual / FRAME_RATE / MOST_STRETCHED:.1f} to {usual / FRAME_RATE * MOST_STRETCHED:.1f} s, or 0 "
            "for the usual."
        )
    return frames, usual / frames
