"""The bundled model's way of reading: phones, one token a mel frame, with durations from a table.

Why one token a frame: see ``resources/docs/bundled-models.md``.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch

from engine.front_end.alignment import TABLE, Alignment, align
from engine.front_end.chunking import chunks
from engine.front_end.durations import DurationTable, frames, labels
from engine.front_end.phonemiser import Phonemiser
from engine.front_end.phones import PAUSE, PhoneVocabulary
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.f5.passages import Passage, Passages, Prompt

PASSAGE_SECONDS = 6.0
"""New speech in one passage; the model was trained on up to ten seconds, prompt included."""
FIRST_PASSAGE_SECONDS = 3.5
ESTIMATED = (
    "When each sound of the voice's recording is spoken was only estimated, so the voice may be copied less well; to "
    "have it measured, install pocketsphinx and check that the transcript has exactly the words of the recording."
)
"""A note for the user."""


class PhoneFrontEnd:
    """Reads English with the lexicon and the duration table that lie in the model's folder."""

    def __init__(self, folder: Path) -> None:
        self._vocabulary = PhoneVocabulary.load(folder / "vocab.txt")
        self._durations = DurationTable.load(folder / "durations.json")
        self._last_aligned: tuple[Prompt, Alignment] | None = None
        self._phonemise = Phonemiser()
        self._read = functools.lru_cache(maxsize=4096)(self._phonemise.read)

    def passages(self, text: str, prompt: Prompt, speed: float, quick_start: bool) -> Passages:
        """Cut ``text`` into passages. With ``quick_start`` the first is shorter, so that it is heard sooner."""
        whole = self._phonemise(text)
        pieces = chunks(
            text,
            lambda piece: self._seconds(piece, prompt, speed),
            PASSAGE_SECONDS,
            FIRST_PASSAGE_SECONDS if quick_start else None,
        )
        spoken = [piece for piece in pieces if self._phones(piece)]
        prompt_ids = self._prompt_ids(prompt)
        passages = []
        for number, piece in enumerate(spoken):
            phones = self._phones(piece)
            # A pause on both sides of a seam: passages fade into each other there, and a sentence has ended.
            before = (PAUSE,) if number else ()
            after = (PAUSE,) if number < len(spoken) - 1 else ()
            phones = (*before, *phones, *after)
            seconds = self._durations.seconds(phones, prompt.voice.id, speed)
            ids = np.concatenate([prompt_ids, frames(phones, seconds, self._vocabulary, SAMPLE_RATE, HOP)])
            passages.append(Passage(piece, torch.from_numpy(ids)[None], len(ids)))
        estimated = not prompt.voice.phones and self._aligned(prompt).method == TABLE
        return Passages(tuple(passages), (*whole.notes, *((ESTIMATED,) if estimated else ())))

    def _phones(self, piece: str) -> tuple[str, ...]:
        return self._read(piece).phones

    def _seconds(self, piece: str, prompt: Prompt, speed: float) -> float:
        phones = self._phones(piece)
        return self._durations.total(phones, prompt.voice.id, speed) if phones else 0.0

    def _prompt_ids(self, prompt: Prompt) -> np.ndarray:
        """One phone a frame for the recording: as measured, or as the transcript can be aligned with it."""
        phones = prompt.voice.phones or self._aligned(prompt).phones
        return labels(phones, prompt.frames, self._vocabulary, SAMPLE_RATE, HOP)

    def _aligned(self, prompt: Prompt) -> Alignment:
        if self._last_aligned is None or self._last_aligned[0] is not prompt:
            transcript = self._phonemise(prompt.voice.transcript)
            aligned = align(prompt.samples.numpy(), SAMPLE_RATE, transcript, self._durations)
            self._last_aligned = prompt, aligned
        return self._last_aligned[1]
