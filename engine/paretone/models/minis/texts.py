"""How the bundled models with tokens read texts: as phones with their times."""

from __future__ import annotations

import numpy as np

from paretone.front_end.alignment import Alignment
from paretone.front_end.phones import TimedPhone
from paretone.front_end.reading import NaturalReader

Spoken = tuple[str, tuple[TimedPhone, ...]]
"""A piece of text, and its phones."""


class Texts:
    """Reads texts by the phones and lengths of natural speech, and finds transcripts in recordings."""

    def __init__(self) -> None:
        self._reader = NaturalReader()

    def spoken(
        self, text: str, speed: float, by_sentence: bool, seed: int | None
    ) -> tuple[list[Spoken], tuple[str, ...]]:
        """Pieces of ``text``, and what the user should know; with ``by_sentence`` no piece has more than one sentence.
        The pace is drawn from ``seed``, and is the mean one without. Raises :class:`paretone.errors.TextError` and
        :class:`paretone.errors.SettingError`."""
        pieces, notes = self._reader.pieces(text, speed, by_sentence=by_sentence, seed=seed)
        return [(piece.text, piece.phones) for piece in pieces], notes

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """As :class:`paretone.front_end.alignment.Aligner` says."""
        return self._reader.heard(samples, rate, transcript)
