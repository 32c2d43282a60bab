"""Phones that a checkpoint reads: those of natural speech (:mod:`paretone.front_end.natural.phones`).

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

EARLIER = "pau"
"""A phone of the models that earlier versions made, which read the dictionary's phones and pauses."""


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
