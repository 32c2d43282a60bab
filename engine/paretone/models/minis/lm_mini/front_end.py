"""Front end of the bundled language model: phones of a text and of a voice's recording, one for every speech token."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from paretone.front_end.phones import PhoneVocabulary, TimedPhone
from paretone.models.base import Voice
from paretone.models.f5.front_end import Prompt as ReadPrompt
from paretone.models.families.voices import Remembered
from paretone.models.minis.frames import token_phones
from paretone.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from paretone.models.minis.natural_coding import NaturalCoding, NaturalVoice
from paretone.models.minis.prompts import phones_of_prompt
from paretone.models.minis.texts import Texts
from paretone.setting.knobs import Values


@dataclass(frozen=True)
class LmMiniPrompt:
    """A voice made ready."""

    phones: np.ndarray = field(repr=False)
    """(n,) ids, one for every code."""
    codes: tuple[int, ...] = field(repr=False)
    who: NaturalVoice = field(repr=False)
    """Who speaks."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LmMiniPassage:
    """One piece of text."""

    text: str
    phones: np.ndarray = field(repr=False)
    """(n,) ids, one for every speech token that is to come."""
    end: int = 0
    """Sample at which its last sound is over."""

    @property
    def expected(self) -> int:
        """Speech tokens that it takes."""
        return max(len(self.phones), 1)


@dataclass(frozen=True)
class LmMiniPassages:
    """A whole text."""

    passages: tuple[LmMiniPassage, ...]
    notes: tuple[str, ...] = ()


class LmMiniFrontEnd:
    """Makes voices and texts ready, and remembers the last voice."""

    def __init__(
        self,
        coding: NaturalCoding[SpeechTokenizer],
        texts: Texts,
        vocabulary: PhoneVocabulary,
        read_prompt: Callable[[Voice], ReadPrompt],
    ) -> None:
        self._coding, self._texts, self._vocabulary, self._read_prompt = coding, texts, vocabulary, read_prompt
        self._prompts: Remembered[LmMiniPrompt] = Remembered(operator.is_)

    def __call__(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None], seed: int | None = None
    ) -> tuple[LmMiniPrompt, LmMiniPassages]:
        """Raises :class:`paretone.errors.AudioError` for a voice that it cannot speak in, and
        :class:`paretone.errors.TextError`."""
        prompt = self.prompt(voice)
        check()
        pieces, notes = self._texts.spoken(text, float(options["speed"]), by_sentence=False, seed=seed)
        return prompt, LmMiniPassages(
            tuple(LmMiniPassage(piece, self._tokens(phones), self._coding.end_of(phones)) for piece, phones in pieces),
            notes,
        )

    def prompt(self, voice: Voice) -> LmMiniPrompt:
        """``voice`` made ready."""
        read = self._read_prompt(voice)
        return self._prompts.of(read, lambda: self._encoded(read))

    @torch.inference_mode()
    def _encoded(self, read: ReadPrompt) -> LmMiniPrompt:
        coding = self._coding
        phones, notes = phones_of_prompt(read, self._texts)
        frames = coding.frames(read.mel[:, : read.frames])
        who = NaturalVoice.of(frames)
        codes = tuple(coding.codes(frames, who).tolist())
        return LmMiniPrompt(self._tokens(phones, len(frames)), codes, who, notes)

    def _tokens(self, phones: Sequence[TimedPhone], frames: int | None = None) -> np.ndarray:
        """(n,) ids of ``phones`` over a number of frames, by default as many as they fill."""
        frames = self._coding.frames_until(phones) if frames is None else frames
        return token_phones(self._coding.labels(phones, frames, self._vocabulary), self._coding.stride)
