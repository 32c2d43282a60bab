"""Front end of the bundled masked model: phones of a text and of a voice's recording, one token for every codec
frame."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from paretone.audio.mel import MelFrontEnd
from paretone.front_end.phones import TimedPhone
from paretone.models.base import Voice
from paretone.models.f5.front_end import Prompt as ReadPrompt
from paretone.models.f5.front_end import PromptReader
from paretone.models.families.voices import Remembered
from paretone.models.minis.natural_coding import NaturalCoding, NaturalVoice
from paretone.models.minis.omni_mini.codec import ResidualCodec
from paretone.models.minis.omni_mini.layout import Layout
from paretone.models.minis.prompts import phones_of_prompt
from paretone.models.minis.texts import Texts


@dataclass(frozen=True)
class OmniMiniPrompt:
    """A voice made ready."""

    tokens: Tensor = field(repr=False)
    """(n,) ids of the text, one for every frame."""
    codes: Tensor = field(repr=False)
    """(codebooks, n)."""
    who: NaturalVoice = field(repr=False)
    """Who speaks."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OmniMiniPassage:
    """One piece of text."""

    text: str
    tokens: Tensor = field(repr=False)
    """(n,) ids, one for every frame that is to come."""
    end: int = 0
    """Sample at which its last sound is over."""

    @property
    def frames(self) -> int:
        """Frames of its canvas."""
        return len(self.tokens)


@dataclass(frozen=True)
class OmniMiniPassages:
    """A whole text."""

    passages: tuple[OmniMiniPassage, ...]
    notes: tuple[str, ...] = ()


class OmniMiniFrontEnd:
    """Makes voices and texts ready, and remembers the last voice. What it gives is on the codec's device."""

    def __init__(self, coding: NaturalCoding[ResidualCodec], texts: Texts, layout: Layout) -> None:
        self._coding, self._texts, self._layout = coding, texts, layout
        self._read_prompt = PromptReader(MelFrontEnd(), True, layout.vocabulary.index)
        self._prompts: Remembered[OmniMiniPrompt] = Remembered(operator.is_)

    def passages(self, text: str, speed: float, by_sentence: bool, seed: int | None = None) -> OmniMiniPassages:
        """``text`` in pieces; see :meth:`paretone.models.minis.texts.Texts.spoken`.

        Raises :class:`paretone.errors.TextError`.
        """
        pieces, notes = self._texts.spoken(text, speed, by_sentence, seed)
        return OmniMiniPassages(
            tuple(
                OmniMiniPassage(piece, self._tokens(phones), self._coding.end_of(phones)) for piece, phones in pieces
            ),
            notes,
        )

    def prompt(self, voice: Voice) -> OmniMiniPrompt:
        """``voice`` made ready. Raises :class:`paretone.errors.AudioError` and :class:`paretone.errors.TextError`."""
        read = self._read_prompt(voice)
        return self._prompts.of(read, lambda: self._encoded(read))

    @torch.inference_mode()
    def _encoded(self, read: ReadPrompt) -> OmniMiniPrompt:
        coding = self._coding
        phones, notes = phones_of_prompt(read, self._texts)
        frames = coding.frames(read.mel[:, : read.frames])
        who = NaturalVoice.of(frames)
        codes = coding.codes(frames, who).T.contiguous()
        return OmniMiniPrompt(self._tokens(phones, codes.shape[1]), codes, who, notes)

    def _tokens(self, phones: Sequence[TimedPhone], count: int | None = None) -> Tensor:
        """``phones`` over a number of codec frames, by default as many as they fill. The network has never heard a
        frame that speech ends in, and would fill one that silence ends in with a burst."""
        stride = self._coding.stride
        if count is None:
            count = max(self._coding.frames_until(phones) // stride, 1)
        by_frame = self._coding.labels(phones, count * stride, self._layout.vocabulary)
        return torch.from_numpy(self._layout.text(by_frame, stride)).to(self._coding.device)
