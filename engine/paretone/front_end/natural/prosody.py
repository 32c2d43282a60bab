"""How fast a sentence is spoken, and when each of its sounds.

The network of lengths gives the mean reading. Speech that models learnt from was faster or slower than it by up to 15 %
and had emphasis on some word in two of five sentences; :meth:`Prosody.drawn` draws the same, so that seeds differ in
timing as the training speech does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from paretone.front_end.natural.phones import EDGE, PUNCTUATION, timed_phones
from paretone.front_end.timed_phone import TimedPhone

TEMPOS = (0.85, 1.15)
"""Factors on the speed, between which those of sentences are drawn."""
EMPHASISED = 0.4
"""Share of sentences with emphasis on some word."""
STRENGTHS = (0.4, 1.0)
LONGER = 0.3
"""What full emphasis adds to the length of a word."""
FRAME = 0.0125
"""Seconds of a latent frame; lengths are even numbers of them unless a word is emphasised."""
UNIT_FRAMES = 2
LEAD, TAIL = 8, 12
"""Frames of silence kept before the first symbol and after the last."""


@dataclass(frozen=True)
class Prosody:
    """How a sentence is spoken."""

    tempo: float = 1.0
    """Twice as fast at 2."""
    emphasis: float | None = None
    """Which word is emphasised, as a share of the words; ``None`` for none."""
    strength: float = 0.0
    """Of the emphasis, from 0 to 1."""

    @classmethod
    def drawn(cls, *seed: int) -> Prosody:
        """One of those that the training speech has."""
        draw = np.random.default_rng([one % 2**64 for one in seed])
        tempo, emphasised, word, strength = (
            draw.uniform(*TEMPOS),
            draw.uniform(),
            draw.uniform(),
            draw.uniform(*STRENGTHS),
        )
        return cls(tempo, word if emphasised < EMPHASISED else None, strength)

    def spoken(
        self, phonemes: str, units: Callable[[Sequence[str]], np.ndarray], speed: float
    ) -> tuple[TimedPhone, ...]:
        """The phones of a sentence with start and end in seconds from its start, silence at both ends included.
        ``units`` gives mean lengths of symbols in 25 ms."""
        symbols = (EDGE, *phonemes, EDGE)
        lengths = UNIT_FRAMES * np.maximum(np.round(units(symbols) / (self.tempo * speed)), 1).astype(int)
        lengths[0], lengths[-1] = min(lengths[0], LEAD), min(lengths[-1], TAIL)
        return timed_phones(symbols, self._emphasised(symbols, lengths).tolist(), FRAME)

    def _emphasised(self, symbols: Sequence[str], lengths: np.ndarray) -> np.ndarray:
        if self.emphasis is None:
            return lengths
        inside = word_at(symbols, self.emphasis)
        ends = np.cumsum(lengths[inside]) * (1 + LONGER * self.strength)
        longer = lengths.copy()
        longer[inside] = np.diff(np.round(ends), prepend=0)
        return longer


def word_at(symbols: Sequence[str], share: float) -> np.ndarray:
    """The places of the symbols of the word at ``share`` of all words; none if there is no word."""
    apart = [symbol in (EDGE, " ") or symbol in PUNCTUATION for symbol in symbols]
    numbers = np.cumsum([False, *(before and not here for before, here in pairwise(apart))])
    inside = np.where(apart, 0, numbers)
    return np.flatnonzero(inside == int(share * inside.max()) + 1)
