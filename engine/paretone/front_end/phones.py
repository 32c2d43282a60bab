"""Phones: those of the pronunciation dictionary, and those that a checkpoint reads.

The dictionary's (:mod:`paretone.front_end.lexicon`) are CMU's ARPAbet in lower case without stress, with the unstressed
``ah`` kept apart as ``ax``. The bundled models read those of natural speech (:mod:`paretone.front_end.natural.phones`).
A model's ``vocab.txt`` lists them, one a line, in the order of its embedding; that file decides the order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paretone.errors import CheckpointError
from paretone.front_end.natural.phones import EDGE
from paretone.front_end.natural.phones import PHONES as NATURAL_PHONES
from paretone.reading import first_line, read_text, shown

VOWELS = frozenset("aa ae ah ao aw ax ay eh er ey ih iy ow oy uh uw".split())

CONSONANTS = frozenset("b ch d dh f g hh jh k l m n ng p r s sh t th v w y z zh".split())

EARLIER = "pau"
"""A phone of the models that earlier versions made, which read the dictionary's phones and pauses."""


def fold_arpabet(symbol: str) -> str:
    """A phone of the dictionary for a symbol with stress: ``AH0`` is ``ax``, ``ER1`` is ``er``, ``IY1`` is ``iy``."""
    if symbol == "AH0":
        return "ax"
    return symbol.rstrip("012").lower()


def to_arpabet(phones: Iterable[str]) -> str:
    """Phones without stress in pocketsphinx's notation, which has no schwa."""
    return " ".join("AH" if phone == "ax" else phone.upper() for phone in phones)


@dataclass(frozen=True)
class PhoneVocabulary:
    """The phones of one checkpoint in the order of its text embedding (row ``index + 1``; row 0 is filler)."""

    phones: tuple[str, ...]
    index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {phone: number for number, phone in enumerate(self.phones)})

    @classmethod
    def read(cls, listed: str) -> PhoneVocabulary:
        """From a list with spaces or line ends in between. Raises :class:`CheckpointError` when it is no list of
        phones, or one of an earlier version."""
        phones = tuple(listed.split())
        if EARLIER in phones:
            raise CheckpointError(
                "The model was made with an earlier version of Paretone, whose phones this one cannot read; train it "
                "again with paretone train, or open it with that version."
            )
        unknown = sorted(set(phones) - set(NATURAL_PHONES))
        if unknown or EDGE not in phones or len(set(phones)) != len(phones):
            what = (
                f"{shown(unknown[0])} is not a phone" if unknown else f"{EDGE!r} is missing or a phone is listed twice"
            )
            raise CheckpointError(f"The model's list of phones cannot be used: {what}; restore the model folder.")
        return cls(phones)

    @classmethod
    def load(cls, path: Path) -> PhoneVocabulary:
        """Read ``vocab.txt``. Raises :class:`CheckpointError` as :meth:`read` does, and when it is missing."""
        try:
            listed = read_text(path)
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"The phone list {path} cannot be read ({first_line(error)}); restore the model folder."
            ) from error
        return cls.read(listed)

    def ids(self, phones: Iterable[str]) -> np.ndarray:
        """(n,) int64 indices of ``phones``. Raises :class:`CheckpointError` for a phone that the model lacks."""
        try:
            return np.array([self.index[phone] for phone in phones], dtype=np.int64)
        except KeyError as error:
            raise CheckpointError(
                f"The model's phone list lacks {shown(error.args[0])}; use the vocab.txt that came with the model."
            ) from error
