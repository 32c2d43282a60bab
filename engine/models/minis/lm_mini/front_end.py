"""Front end of the bundled language model: phones of a text and of a voice's recording, one for every speech token."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.errors import AudioError
from engine.front_end.durations import DurationTable, frames, labels
from engine.front_end.phones import PhoneVocabulary
from engine.front_end.reading import PhoneReader
from engine.models.base import Voice
from engine.models.f5.passages import Prompt as ReadPrompt
from engine.models.f5.prompts import PromptReader
from engine.models.families.voices import Remembered
from engine.models.minis.frames import HOP, SAMPLE_RATE, token_phones
from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from engine.models.minis.lm_mini.voices import no_mean_mel
from engine.setting.knobs import Values


@dataclass(frozen=True)
class LmMiniPrompt:
    """A voice made ready."""

    phones: np.ndarray = field(repr=False)
    """(n,) ids, one for every code."""
    codes: tuple[int, ...] = field(repr=False)
    mean_mel: Tensor = field(repr=False)
    """(bands,) over much of the voice's speech."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LmMiniPassage:
    """One piece of text."""

    text: str
    phones: np.ndarray = field(repr=False)
    """(n,) ids, one for every speech token that is to come."""

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
        tokenizer: SpeechTokenizer,
        mean_mels: dict[str, Tensor],
        durations: DurationTable,
        vocabulary: PhoneVocabulary,
        read_prompt: PromptReader,
        title: str,
    ) -> None:
        self._tokenizer, self._mean_mels, self._title = tokenizer, mean_mels, title
        self._reader, self._vocabulary, self._read_prompt = PhoneReader(durations), vocabulary, read_prompt
        self._prompts: Remembered[LmMiniPrompt] = Remembered(operator.is_)

    def __call__(
        self, text: str, voice: Voice, options: Values, check: Callable[[], None]
    ) -> tuple[LmMiniPrompt, LmMiniPassages]:
        """Raises :class:`engine.errors.AudioError` for a voice whose mean mel is not known, and
        :class:`engine.errors.TextError`."""
        prompt = self.prompt(voice)
        check()
        pieces, notes = self._reader.pieces(text, voice.id, float(options["speed"]), quick_start=False)
        passages = []
        for piece in pieces:
            by_frame = frames(piece.phones, piece.seconds, self._vocabulary, SAMPLE_RATE, HOP)
            passages.append(LmMiniPassage(piece.text, token_phones(by_frame, self._tokenizer.config.stride)))
        return prompt, LmMiniPassages(tuple(passages), notes)

    def prompt(self, voice: Voice) -> LmMiniPrompt:
        """``voice`` made ready."""
        if voice.id not in self._mean_mels:
            raise AudioError(no_mean_mel(voice.title or voice.id, self._title, tuple(self._mean_mels)))
        read = self._read_prompt(voice)
        return self._prompts.of(read, lambda: self._encoded(read))

    @torch.inference_mode()
    def _encoded(self, read: ReadPrompt) -> LmMiniPrompt:
        stride = self._tokenizer.config.stride
        codes = self._tokenizer.encode(read.mel[:, : read.frames].to(self._tokenizer.mel_mean.device))
        by_frame = labels(read.voice.phones, read.frames, self._vocabulary, SAMPLE_RATE, HOP)
        phones = token_phones(by_frame, stride)
        return LmMiniPrompt(phones, tuple(codes[0].tolist()), self._mean_mels[read.voice.id], read.notes)
