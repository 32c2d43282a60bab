"""The bundled model's way of reading: phones, one token a mel frame, with durations from a table.

Why one token a frame: see ``resources/docs/bundled-models.md``.
"""

from __future__ import annotations

import operator
from pathlib import Path

import numpy as np
import torch

from engine.front_end.alignment import TABLE, Alignment
from engine.front_end.durations import DurationTable, frames, labels
from engine.front_end.phones import PhoneVocabulary
from engine.front_end.reading import ESTIMATED, PhoneReader
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.f5.passages import Passage, Passages, Prompt
from engine.models.families.voices import Remembered

VOCABULARY, DURATIONS = "vocab.txt", "durations.json"
"""Files in the model's folder."""


class PhoneFrontEnd:
    """Reads English with the lexicon and the duration table that lie in the model's folder."""

    def __init__(self, folder: Path) -> None:
        self._vocabulary = PhoneVocabulary.load(folder / VOCABULARY)
        self._reader = PhoneReader(DurationTable.load(folder / DURATIONS))
        self._alignments: Remembered[Alignment] = Remembered(operator.is_)

    def passages(self, text: str, prompt: Prompt, speed: float, quick_start: bool) -> Passages:
        """Cut ``text`` into passages. With ``quick_start`` the first is shorter, so that it is heard sooner."""
        pieces, notes = self._reader.pieces(text, prompt.voice.id, speed, quick_start)
        prompt_ids = self._prompt_ids(prompt)
        passages = []
        for piece in pieces:
            ids = frames(piece.phones, piece.seconds, self._vocabulary, SAMPLE_RATE, HOP)
            ids = np.concatenate([prompt_ids, ids])
            passages.append(Passage(piece.text, torch.from_numpy(ids)[None], len(ids)))
        estimated = not prompt.voice.phones and self._aligned(prompt).method == TABLE
        return Passages(tuple(passages), (*notes, *((ESTIMATED,) if estimated else ())))

    def _prompt_ids(self, prompt: Prompt) -> np.ndarray:
        """One phone a frame for the recording: as measured, or as the transcript can be aligned with it."""
        phones = prompt.voice.phones or self._aligned(prompt).phones
        return labels(phones, prompt.frames, self._vocabulary, SAMPLE_RATE, HOP)

    def _aligned(self, prompt: Prompt) -> Alignment:
        def hear() -> Alignment:
            return self._reader.heard(prompt.samples.numpy(), SAMPLE_RATE, prompt.voice.transcript)

        return self._alignments.of(prompt, hear)
