"""Pronunciations for words that no dictionary lists, from their spelling alone.

A joint n-gram model in the manner of Bisani and Ney, "Joint-sequence models for grapheme-to-phoneme conversion" (Speech
Communication 50, 2008): every letter together with the zero to two phones that it stands for is one unit, a word is a
sequence of units, and an interpolated Kneser-Ney n-gram says how likely that sequence is. A beam search finds the best
sequence that spells the word. :mod:`paretone.training.recipes.letter_to_sound` makes the model from the CMU dictionary
and says how good it is: 7.2 % wrong phones on held-out words.
"""

from __future__ import annotations

import functools
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paretone.errors import CheckpointError
from paretone.front_end.lexicon import Phones
from paretone.paths import resource

MODEL = ("lexicon", "letter_to_sound.npz")

BITS = 9
"""Bits of one unit in a packed n-gram, so that seven units fit 64 bits. Unit 0 is never used: packed n-grams of
different lengths differ."""
BOUNDARY = 1
"""The unit before the first and after the last letter."""
BEAM = 24
"""Hypotheses kept after every letter."""


@dataclass(frozen=True)
class Unit:
    """A letter with the phones it stands for."""

    letter: str
    phones: Phones


class LetterToSound:
    """The trained model. ``pronounce`` accepts lower-case a to z."""

    def __init__(
        self, units: dict[int, Unit], probabilities: dict[int, float], back_offs: dict[int, float], order: int
    ):
        """``probabilities`` are natural logarithms by packed n-gram, ``back_offs`` by packed context."""
        self._probabilities = probabilities
        self._back_offs = back_offs
        self._masks = [(1 << BITS * length) - 1 for length in range(order - 1, -1, -1)]
        self._phones = {number: unit.phones for number, unit in units.items()}
        self._by_letter: dict[str, list[int]] = {}
        for number, unit in units.items():
            self._by_letter.setdefault(unit.letter, []).append(number)

    @classmethod
    def load(cls, path: Path) -> LetterToSound:
        """Read a model that :mod:`paretone.training.recipes.letter_to_sound` wrote. Raises :class:`CheckpointError`."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                units = {}
                for number, text in enumerate(stored["units"].tolist(), BOUNDARY + 1):
                    letter, *phones = text.split()
                    units[number] = Unit(letter, tuple(phones))
                return cls(
                    units,
                    dict(zip(np.cumsum(stored["ngrams"]).tolist(), stored["probabilities"].tolist(), strict=True)),
                    dict(zip(np.cumsum(stored["contexts"]).tolist(), stored["back_offs"].tolist(), strict=True)),
                    int(stored["order"]),
                )
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise CheckpointError(
                f"The letter-to-sound model {path} cannot be read ({error}); install Paretone again, or make it with "
                "python -m paretone.training.recipes.letter_to_sound."
            ) from error

    def log_probability(self, history: int, unit: int) -> float:
        """Natural logarithm of the probability of ``unit`` after the packed ``history``."""
        total, last = 0.0, None
        for mask in self._masks:
            context = history & mask
            if context == last:
                continue
            last = context
            probability = self._probabilities.get(context << BITS | unit)
            if probability is not None:
                return total + probability
            total += self._back_offs.get(context, 0.0)
        return total - 20.0

    def pronounce(self, word: str) -> Phones:
        """The most likely phones of ``word`` (letters a to z); empty when no unit spells one of its letters."""
        hypotheses: dict[int, tuple[float, Phones]] = {BOUNDARY: (0.0, ())}
        for letter in word:
            extended: dict[int, tuple[float, Phones]] = {}
            for history, (score, phones) in hypotheses.items():
                for unit in self._by_letter.get(letter, ()):
                    reached = score + self.log_probability(history, unit)
                    state = (history << BITS | unit) & self._masks[0]
                    known = extended.get(state)
                    if known is None or reached > known[0]:
                        extended[state] = (reached, phones + self._phones[unit])
            best = sorted(extended.items(), key=lambda item: item[1][0], reverse=True)[:BEAM]
            hypotheses = dict(best)
        ended = [
            (score + self.log_probability(history, BOUNDARY), phones) for history, (score, phones) in hypotheses.items()
        ]
        return max(ended)[1] if ended else ()


@functools.lru_cache(maxsize=1)
def default_letter_to_sound() -> LetterToSound:
    """The bundled model, read once."""
    return LetterToSound.load(resource(*MODEL))
