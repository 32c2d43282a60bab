"""The bundled models' ways of reading: phones, one token a mel frame.

Why one token a frame: see ``resources/docs/bundled-models.md``.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from engine.front_end.alignment import ESTIMATED, TABLE, Aligner, Alignment
from engine.front_end.durations import DurationTable, frames
from engine.front_end.frame_phones import labels
from engine.front_end.natural.reading import NaturalReader
from engine.front_end.phones import PhoneVocabulary
from engine.front_end.reading import PhoneReader
from engine.front_end.timed_phone import TimedPhone
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.f5.passages import Passage, Passages, Prompt
from engine.models.families.voices import Remembered

VOCABULARY, DURATIONS = "vocab.txt", "durations.json"
"""Files in the model's folder."""


class FramePhones(ABC):
    """Reads English as one phone a mel frame; how texts are read is the front end's own."""

    def __init__(self, folder: Path, aligner: Aligner) -> None:
        self._vocabulary = PhoneVocabulary.load(folder / VOCABULARY)
        self._aligner = aligner
        self._alignments: Remembered[Alignment] = Remembered(operator.is_)

    @property
    def phones(self) -> tuple[str, ...]:
        """The phones that the model knows."""
        return self._vocabulary.phones

    @abstractmethod
    def spoken(
        self, text: str, voice: str, speed: float, quick_start: bool, seed: int | None
    ) -> tuple[list[tuple[str, np.ndarray]], tuple[str, ...]]:
        """Pieces of ``text`` with the ids (frames,) of each, and notes; see :meth:`passages`."""

    def passages(self, text: str, prompt: Prompt, speed: float, quick_start: bool, seed: int | None = None) -> Passages:
        """Cut ``text`` into passages. With ``quick_start`` the first is shorter, so that it is heard sooner."""
        pieces, notes = self.spoken(text, prompt.voice.id, speed, quick_start, seed)
        prompt_ids = self._prompt_ids(prompt)
        passages = []
        for piece, own in pieces:
            ids = np.concatenate([prompt_ids, own])
            passages.append(Passage(piece, torch.from_numpy(ids)[None], len(ids)))
        estimated = not prompt.voice.phones and self._aligned(prompt).method == TABLE
        return Passages(tuple(passages), (*notes, *((ESTIMATED,) if estimated else ())))

    def _prompt_ids(self, prompt: Prompt) -> np.ndarray:
        """One phone a frame for the recording: as measured, or as the transcript can be aligned with it."""
        return self.labels(prompt.voice.phones or self._aligned(prompt).phones, prompt.frames)

    def labels(self, phones: Sequence[TimedPhone], count: int) -> np.ndarray:
        """(count,): which of ``phones`` sounds at each mel frame, by its number in the vocabulary."""
        return labels(phones, count, self._vocabulary, SAMPLE_RATE, HOP)

    def _aligned(self, prompt: Prompt) -> Alignment:
        def hear() -> Alignment:
            return self._aligner.heard(prompt.samples.numpy(), SAMPLE_RATE, prompt.voice.transcript)

        return self._alignments.of(prompt, hear)


class PhoneFrontEnd(FramePhones):
    """With the lexicon and the duration table that lie in the model's folder."""

    def __init__(self, folder: Path) -> None:
        self._reader = PhoneReader(DurationTable.load(folder / DURATIONS))
        super().__init__(folder, self._reader)

    def spoken(
        self, text: str, voice: str, speed: float, quick_start: bool, seed: int | None
    ) -> tuple[list[tuple[str, np.ndarray]], tuple[str, ...]]:
        pieces, notes = self._reader.pieces(text, voice, speed, quick_start)
        return [
            (one.text, frames(one.phones, one.seconds, self._vocabulary, SAMPLE_RATE, HOP)) for one in pieces
        ], notes


class NaturalFrontEnd(FramePhones):
    """With the phones and lengths of natural speech."""

    def __init__(self, folder: Path) -> None:
        self._reader = NaturalReader()
        super().__init__(folder, self._reader)

    def spoken(
        self, text: str, voice: str, speed: float, quick_start: bool, seed: int | None
    ) -> tuple[list[tuple[str, np.ndarray]], tuple[str, ...]]:
        pieces, notes = self._reader.pieces(text, speed, quick_start, seed=seed)
        return [(one.text, self.labels(one.phones, one.mel_frames)) for one in pieces], notes
