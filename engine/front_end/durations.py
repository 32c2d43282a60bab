"""Durations of phones: the means of a voice, and phones laid out over mel frames.

One token per mel frame is how the bundled models read (:mod:`engine.front_end.frame_phones`). The durations are
means over the training speech of a voice, by phone, by whether one of the next three positions is a pause or the
end, and by the classes of the neighbours (vowel, consonant, pause).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.errors import CheckpointError, SettingError
from engine.front_end.frame_phones import labels
from engine.front_end.phones import PAUSE, VOWELS, PhoneVocabulary
from engine.front_end.timed_phone import TimedPhone

TAIL_SECONDS = 0.05
"""Silence after the last phone."""
FINAL_REACH = 3
"""A phone is phrase-final when a pause or the end is at most this many positions away."""


@dataclass(frozen=True)
class DurationTable:
    """Mean seconds by voice and by context key (``phone/final/class before/class after``, with back-off to fewer
    fields)."""

    voices: dict[str, dict[str, float]] = field(repr=False)

    @classmethod
    def load(cls, path: Path) -> DurationTable:
        """Read ``durations.json``. Raises :class:`CheckpointError` when it is missing or is no such table."""
        try:
            voices = json.loads(path.read_text(encoding="utf-8"))["voices"]
            table = cls({name: {key: float(mean) for key, mean in means.items()} for name, means in voices.items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"The duration table {path} cannot be read ({type(error).__name__}: {error}); restore the model folder."
            ) from error
        if not table.voices or not all(table.voices.values()):
            raise CheckpointError(f"The duration table {path} lists no voice; restore the model folder.")
        return table

    def seconds(self, phones: Sequence[str], voice: str, speed: float = 1.0) -> np.ndarray:
        """(len(phones),) seconds at ``speed`` (2 is twice as fast), without the tail. A voice that the table lacks gets
        the mean of those it has. Raises :class:`SettingError` for a speed that is not positive."""
        if not speed > 0:
            raise SettingError(f"The speed is {speed}, but must be greater than 0.")
        tables = [self.voices[voice]] if voice in self.voices else list(self.voices.values())
        keys = [context_keys(phones, position) for position in range(len(phones))]
        return np.array([sum(_first_listed(table, one) for table in tables) for one in keys]) / len(tables) / speed

    def total(self, phones: Sequence[str], voice: str, speed: float = 1.0) -> float:
        """Seconds of the whole, tail included."""
        return float(self.seconds(phones, voice, speed).sum()) + TAIL_SECONDS


def context_keys(phones: Sequence[str], position: int) -> tuple[str, ...]:
    """Keys under which a table may list the phone at ``position``, the most particular first."""
    phone = phones[position]
    near = phones[position + 1 : position + 1 + FINAL_REACH]
    final = int(len(near) < FINAL_REACH or PAUSE in near)
    before = _class(phones[position - 1]) if position else "P"
    after = _class(phones[position + 1]) if position + 1 < len(phones) else "P"
    return (f"{phone}/{final}/{before}/{after}", f"{phone}/{final}/{after}", f"{phone}/{final}", phone)


def _class(phone: str) -> str:
    if phone == PAUSE:
        return "P"
    return "V" if phone in VOWELS else "C"


def _first_listed(table: dict[str, float], keys: tuple[str, ...]) -> float:
    for key in keys:
        if key in table:
            return table[key]
    raise CheckpointError(f"The duration table has no entry for the phone {keys[-1]!r}; restore the model folder.")


def timed(phones: Sequence[str], seconds: np.ndarray) -> tuple[TimedPhone, ...]:
    """``phones`` with start and end, and the tail as a last pause."""
    ends = np.cumsum([*seconds, TAIL_SECONDS]).tolist()
    return tuple(zip((*phones, PAUSE), [0.0, *ends[:-1]], ends, strict=True))


def frames(
    phones: Sequence[str], seconds: np.ndarray, vocabulary: PhoneVocabulary, rate: int = 24000, hop: int = 256
) -> np.ndarray:
    """(n,) int64 indices, one phone per mel frame, for ``phones`` of ``seconds`` each and the tail after
    them."""
    laid_out = timed(phones, seconds)
    return labels(laid_out, round(laid_out[-1][2] * rate / hop), vocabulary, rate, hop)
