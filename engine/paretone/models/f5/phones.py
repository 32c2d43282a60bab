"""The bundled model's way of reading: the phones of natural speech, one token a mel frame.

Why one token a frame: see ``resources/docs/bundled-models.md``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from paretone.front_end.alignment import Alignment, alignment_notes
from paretone.front_end.phones import PhoneVocabulary, TimedPhone, labels
from paretone.front_end.reading import NaturalReader
from paretone.models.f5.config import HOP, SAMPLE_RATE
from paretone.models.f5.passages import Passage, Passages, Prompt
from paretone.models.families.voices import Remembered

VOCABULARY = "vocab.txt"
"""File in the model's folder."""


class FramePhones:
    """Reads English as one phone a mel frame, with the phones and lengths of natural speech."""

    def __init__(self, folder: Path) -> None:
        self._vocabulary = PhoneVocabulary.load(folder / VOCABULARY)
        self._reader = NaturalReader()
        self._alignments: Remembered[Alignment] = Remembered(operator.is_)

    @property
    def phones(self) -> tuple[str, ...]:
        """The phones that the model knows."""
        return self._vocabulary.phones

    def passages(self, text: str, prompt: Prompt, speed: float, quick_start: bool, seed: int | None = None) -> Passages:
        """Cut ``text`` into passages. With ``quick_start`` the first is shorter, so that it is heard sooner."""
        pieces, notes = self._reader.pieces(text, speed, quick_start, seed=seed)
        prompt_ids = self._prompt_ids(prompt)
        passages = []
        for piece in pieces:
            ids = np.concatenate([prompt_ids, self.labels(piece.phones, piece.mel_frames)])
            passages.append(Passage(piece.text, torch.from_numpy(ids)[None], len(ids)))
        heard = () if prompt.voice.phones else alignment_notes(self._aligned(prompt))
        return Passages(tuple(passages), (*notes, *heard))

    def _prompt_ids(self, prompt: Prompt) -> np.ndarray:
        """One phone a frame for the recording: as measured, or as the transcript can be aligned with it."""
        return self.labels(prompt.voice.phones or self._aligned(prompt).phones, prompt.frames)

    def labels(self, phones: Sequence[TimedPhone], count: int) -> np.ndarray:
        """(count,): which of ``phones`` sounds at each mel frame, by its number in the vocabulary."""
        return labels(phones, count, self._vocabulary, SAMPLE_RATE, HOP)

    def _aligned(self, prompt: Prompt) -> Alignment:
        def hear() -> Alignment:
            return self._reader.heard(prompt.samples.numpy(), SAMPLE_RATE, prompt.voice.transcript)

        return self._alignments.of(prompt, hear)
