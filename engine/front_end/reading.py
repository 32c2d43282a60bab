"""Text front end of the bundled models: pieces of a text as phones with durations from a table; and the times of the
phones in a voice's recording."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from engine.front_end.alignment import Alignment, align
from engine.front_end.chunking import FIRST_PIECE_SECONDS, PIECE_SECONDS, chunks, sentences
from engine.front_end.durations import DurationTable
from engine.front_end.language import language_of
from engine.front_end.phonemiser import Phonemiser
from engine.front_end.phones import PAUSE


@dataclass(frozen=True)
class SpokenPiece:
    """A piece of text as it will be spoken."""

    text: str
    phones: tuple[str, ...]
    """With a pause at every seam to another piece: pieces fade into each other there, and a sentence has ended."""
    seconds: np.ndarray = field(repr=False)
    """Seconds of each, without the tail that follows."""


class PhoneReader:
    """Reads English with the lexicon and a table of durations."""

    def __init__(self, durations: DurationTable) -> None:
        self._durations = durations
        self._phonemise = Phonemiser()
        self._read = functools.lru_cache(maxsize=4096)(self._phonemise.read)
        self._read("ready")  # The lexicon is loaded with the model, so that no take pays for it.

    def pieces(
        self, text: str, voice: str, speed: float, quick_start: bool, by_sentence: bool = False
    ) -> tuple[tuple[SpokenPiece, ...], tuple[str, ...]]:
        """``text`` in pieces, with the durations of ``voice``, and what the user should know. With ``quick_start`` the
        first piece is shorter, so that it is heard sooner; with ``by_sentence`` no piece has more than one sentence.

        Raises :class:`engine.errors.TextError`, for texts in other languages too.
        """
        self._phonemise.check(text)
        language_of(text, "the bundled model speaks only English")
        whole = self._phonemise(text)
        first = FIRST_PIECE_SECONDS if quick_start else None
        found = [
            piece
            for number, part in enumerate(sentences(text) if by_sentence else [text])
            for piece in chunks(
                part, lambda piece: self._total(piece, voice, speed), PIECE_SECONDS, None if number else first
            )
        ]
        spoken = [piece for piece in found if self._read(piece).phones]
        pieces = []
        for number, piece in enumerate(spoken):
            before = (PAUSE,) if number else ()
            after = (PAUSE,) if number < len(spoken) - 1 else ()
            phones = (*before, *self._read(piece).phones, *after)
            pieces.append(SpokenPiece(piece, phones, self._durations.seconds(phones, voice, speed)))
        return tuple(pieces), whole.notes

    def _total(self, piece: str, voice: str, speed: float) -> float:
        phones = self._read(piece).phones
        return self._durations.total(phones, voice, speed) if phones else 0.0

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """The phones of a recording (n,) at ``rate`` Hz.

        Raises :class:`engine.errors.AudioError` and :class:`engine.errors.TextError`.
        """
        return align(samples, rate, self._phonemise(transcript), self._durations)
