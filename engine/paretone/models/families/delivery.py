"""Delivery of passages spoken piece by piece: one sound, as it becomes final."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Generator
from typing import Protocol, TypeVar

import numpy as np

from paretone.models.base import Piece
from paretone.models.families.pacing import Pace
from paretone.models.families.passages import Uttered, require_numbers
from paretone.setting.take import Trace

Spoken = TypeVar("Spoken")


class Joiner(Protocol):
    """Makes one sound of the passages, of which each comes in pieces."""

    lead: int
    """By how many samples the sound of the last passage begins later than :meth:`begin` said; below 0: earlier."""

    def begin(self) -> int:
        """Another passage begins; at which sample of the whole."""

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Take the next piece of the passage, and return the samples that are final now."""

    def finish(self) -> np.ndarray:
        """The last passage has ended: the rest."""


class Delivery:
    """Hands on what is spoken, passage by passage, and keeps it."""

    def __init__(
        self,
        joiner: Joiner,
        sample_rate: int,
        paces: Collection[Pace],
        check: Callable[[np.ndarray], None] = require_numbers,
    ) -> None:
        """All of ``paces`` are told when a piece has come, which ``check`` has seen before."""
        self._joiner, self._sample_rate, self._paces, self._check = joiner, sample_rate, paces, check
        self._pieces: list[np.ndarray] = []
        self._starts: list[float] = []
        self._whole = 0, np.zeros(0, np.float32)
        """Number of pieces delivered when the last passage ended, and what the joiner held back then."""

    def passage(self, speaking: Generator[Uttered, None, Spoken]) -> Generator[Piece, None, Spoken]:
        """Deliver the next passage while it is spoken: yields its pieces and returns what ``speaking`` returns. Raises
        :class:`PlainError` for samples that are no numbers."""
        began = self._joiner.begin()
        while True:
            try:
                uttered = next(speaking)
            except StopIteration as end:
                self._starts.append((began + self._joiner.lead) / self._sample_rate)
                # A copy ends here, should no passage follow.
                self._whole = len(self._pieces), copy.deepcopy(self._joiner).finish()
                return end.value
            samples, start = self._joiner.push(uttered.samples), (began + self._joiner.lead) / self._sample_rate
            trace = uttered.seen(start) if uttered.seen is not None and len(samples) else None
            yield from self._heard(samples, len(self._starts), trace)

    def finish(self) -> Generator[Piece, None, None]:
        """Deliver what was held back until the last passage had ended."""
        yield from self._heard(self._joiner.finish(), max(0, len(self._starts) - 1))

    @property
    def samples(self) -> np.ndarray:
        """All that was delivered, (n,) float32."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros(0, np.float32)

    @property
    def finished(self) -> np.ndarray:
        """The passages that have ended, without what has come of the next one, (n,) float32."""
        delivered, rest = self._whole
        return np.concatenate([*self._pieces[:delivered], rest])

    @property
    def starts(self) -> tuple[float, ...]:
        """At which second of the whole each passage begins."""
        return tuple(self._starts)

    def _heard(self, samples: np.ndarray, passage: int, trace: Trace | None = None) -> Generator[Piece, None, None]:
        if len(samples):
            self._check(samples)
            self._pieces.append(samples)
            for pace in self._paces:
                pace.delivered(len(samples) / self._sample_rate)
            yield Piece(samples, passage, trace)
