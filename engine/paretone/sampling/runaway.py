"""Speech that does not end: a model that says the same again and again, or continues long after the text is over.

It is the commonest way in which speech language models, and pruned ones above all, go wrong. Decoding is then stopped,
and what was spoken until then is kept. Torch-free.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paretone.sampling.autoregressive import Cycle, Decoding

REPEATED_SECONDS = 3.0
"""Longest repetition: silence, one token many times, is seldom longer."""
LONGEST_PERIOD_SECONDS = 1.0
"""The longest stretch whose repetition is noticed."""
LENGTH_RATIO = 3.0
"""Longest speech as a multiple of the expected length,"""
SHORTEST_EXCESS_SECONDS = 2.0
"""but at least this much longer."""


@dataclass(frozen=True)
class Runaway:
    """The detected runaway."""

    kind: str
    """``repetition`` or ``length``."""
    seconds: float
    """When, from the first token on."""

    def __str__(self) -> str:
        why = "repeated itself" if self.kind == "repetition" else "was far longer than its text"
        return f"Speech {why} and was stopped after {self.seconds:.1f} s; what was spoken until then was kept."


class RunawayGuard:
    """Follows tokens of ``token_rate`` per second, of which ``expected`` are expected if that is known."""

    def __init__(self, token_rate: float, expected: int | None = None) -> None:
        self.found: Runaway | None = None
        self._rate = token_rate
        self._longest = max(1, round(LONGEST_PERIOD_SECONDS * token_rate))
        self._repeated = max(self._longest + 1, round(REPEATED_SECONDS * token_rate))
        self._limit = None
        if expected is not None:
            self._limit = max(LENGTH_RATIO * expected, expected + SHORTEST_EXCESS_SECONDS * token_rate)
        self._recent: list[int] = []
        """The last tokens, the newest first."""
        self._equal = [0] * self._longest
        """For every period from 1 on: how many of the last tokens equal the one that far before them."""
        self._count = 0

    def observe(self, tokens: Sequence[int]) -> Runaway | None:
        """Take in ``tokens``; what was noticed by now, if anything."""
        for token in tokens:
            for period, before in enumerate(self._recent):
                self._equal[period] = self._equal[period] + 1 if token == before else 0
            self._recent = [token, *self._recent[: self._longest - 1]]
            self._count += 1
            if self.found is None:
                self.found = self._noticed()
        return self.found

    def _noticed(self) -> Runaway | None:
        # The first stretch counts as well, and a long one must have come back twice.
        repeats = any(
            equal + period >= self._repeated and equal >= 2 * period
            for period, equal in enumerate(self._equal, start=1)
        )
        if repeats:
            return Runaway("repetition", self._count / self._rate)
        if self._limit is not None and self._count > self._limit:
            return Runaway("length", self._count / self._rate)
        return None


def guarded(decoding: Decoding, guard: RunawayGuard) -> Generator[Cycle, None, None]:
    """The cycles of ``decoding``, up to the one in which ``guard`` notices something."""
    for cycle in decoding:
        yield cycle
        if guard.observe(cycle.tokens):
            decoding.close()
            return
