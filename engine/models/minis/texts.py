"""How the bundled models with tokens read texts: as phones with their times."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from engine.front_end.alignment import Aligner, Alignment
from engine.front_end.durations import DurationTable, timed
from engine.front_end.natural.reading import NaturalReader
from engine.front_end.reading import PhoneReader
from engine.front_end.timed_phone import TimedPhone
from engine.models.base import Voice

Spoken = tuple[str, tuple[TimedPhone, ...]]
"""A piece of text, and its phones."""


class Texts(Aligner, Protocol):
    """Reads texts, and finds transcripts in recordings."""

    def spoken(
        self, text: str, voice: Voice, speed: float, by_sentence: bool, seed: int | None
    ) -> tuple[list[Spoken], tuple[str, ...]]:
        """Pieces of ``text``, and what the user should know; with ``by_sentence`` no piece has more than one sentence.
        The pace is drawn from ``seed`` where it is not fixed, and is the mean one without. Raises
        :class:`engine.errors.TextError` and :class:`engine.errors.SettingError`."""


class NaturalTexts:
    """By the phones and lengths of natural speech."""

    def __init__(self) -> None:
        self._reader = NaturalReader()

    def spoken(
        self, text: str, voice: Voice, speed: float, by_sentence: bool, seed: int | None
    ) -> tuple[list[Spoken], tuple[str, ...]]:
        """As :class:`Texts` says."""
        pieces, notes = self._reader.pieces(text, speed, by_sentence=by_sentence, seed=seed)
        return [(piece.text, piece.phones) for piece in pieces], notes

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """As :class:`engine.front_end.alignment.Aligner` says."""
        return self._reader.heard(samples, rate, transcript)


class TableTexts:
    """By a lexicon and a table of the voices' mean durations."""

    def __init__(self, durations: DurationTable) -> None:
        self._reader = PhoneReader(durations)

    def spoken(
        self, text: str, voice: Voice, speed: float, by_sentence: bool, seed: int | None
    ) -> tuple[list[Spoken], tuple[str, ...]]:
        """As :class:`Texts` says."""
        pieces, notes = self._reader.pieces(text, voice.id, speed, quick_start=False, by_sentence=by_sentence)
        return [(piece.text, timed(piece.phones, piece.seconds)) for piece in pieces], notes

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """As :class:`engine.front_end.alignment.Aligner` says."""
        return self._reader.heard(samples, rate, transcript)
