"""Phones of natural speech, timed phones, and the phone list of a checkpoint. Torch-free.

The symbols are those of the teacher's text front end, which writes American English in the alphabet of Kokoro's
``misaki``: one letter per sound, capitals for diphthongs, ``ˈ`` and ``ˌ`` before stressed vowels, punctuation and
blanks between words. Each has a duration. Here a stress mark and its vowel are one phone, with the duration of both.

A model's ``vocab.txt`` lists its phones, one per line, in the order of its embedding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paretone.errors import CheckpointError
from paretone.reading import read_text, readable, shown

STRESSES = ("", "ˌ", "ˈ")
VOWELS = tuple("AIOWYiuæɐɑɔəɛɜɪʊʌᵊᵻ")
CONSONANTS = tuple("Tbdfhjklmnpstvwzðŋɡɹɾʃʒʔʤʧθ")
PUNCTUATION = tuple(';:,.!?—…"()“”')
BLANK = "_"
EDGE = "^"
"""The silence before the first symbol and after the last."""
SILENT = (EDGE, BLANK, *PUNCTUATION)
PHONES = (EDGE, BLANK, *PUNCTUATION, *CONSONANTS, *(stress + vowel for vowel in VOWELS for stress in STRESSES))


def timed_phones(symbols: Sequence[str], frames: Sequence[int], seconds: float) -> tuple[TimedPhone, ...]:
    """Phones of ``symbols``, which last ``frames`` frames of ``seconds`` each; those without duration are left out."""
    phones: list[TimedPhone] = []
    mark, waiting, first = "", 0, 0
    for symbol, length in zip(symbols, frames, strict=True):
        if symbol in STRESSES:
            mark, waiting = symbol, waiting + length
            continue
        name = BLANK if symbol == " " else mark + symbol if symbol in VOWELS else symbol
        last = first + waiting + length
        if last > first:
            phones.append((name, round(first * seconds, 4), round(last * seconds, 4)))
        mark, waiting, first = "", 0, last
    return tuple(phones)


def words(phones: Sequence[TimedPhone]) -> Iterator[list[int]]:
    """Indices into ``phones`` for each word."""
    group: list[int] = []
    for place, (name, _, _) in enumerate(phones):
        if name in SILENT:
            if group:
                yield group
            group = []
        else:
            group.append(place)
    if group:
        yield group


def last_sound(phones: Sequence[TimedPhone]) -> float:
    """End of the last audible phone, in seconds; 0 without one."""
    return max((end for name, _, end in phones if name not in SILENT), default=0.0)


TimedPhone = tuple[str, float, float]
"""Phone, start and end in seconds."""


EARLIER = "pau"
"""Phone that marks models of earlier versions, which read the dictionary's phones and pauses."""


@dataclass(frozen=True)
class PhoneVocabulary:
    """The phones of one checkpoint in the order of its text embedding (row ``index + 1``; row 0 is filler)."""

    phones: tuple[str, ...]
    index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {phone: number for number, phone in enumerate(self.phones)})

    @classmethod
    def read(cls, listed: str) -> PhoneVocabulary:
        """Parse a list separated by whitespace. Raises :class:`CheckpointError` for an invalid or an earlier one."""
        phones = tuple(listed.split())
        if EARLIER in phones:
            raise CheckpointError(
                "The model was made with an earlier version of Paretone, whose phones this one cannot read; train it "
                "again with paretone train, or open it with that version."
            )
        unknown = sorted(set(phones) - set(PHONES))
        if unknown or EDGE not in phones or len(set(phones)) != len(phones):
            what = (
                f"{shown(unknown[0])} is not a phone" if unknown else f"{EDGE!r} is missing or a phone is listed twice"
            )
            raise CheckpointError(f"The model's list of phones cannot be used: {what}; restore the model folder.")
        return cls(phones)

    @classmethod
    def load(cls, path: Path) -> PhoneVocabulary:
        """Read ``vocab.txt``. Raises :class:`CheckpointError` if it is missing or invalid."""
        with readable(CheckpointError, f"The phone list {path} cannot be read", "restore the model folder"):
            listed = read_text(path)
        return cls.read(listed)

    def ids(self, phones: Iterable[str]) -> np.ndarray:
        """(n,) int64 indices of ``phones``. Raises :class:`CheckpointError` for a phone that the model lacks."""
        try:
            return np.array([self.index[phone] for phone in phones], dtype=np.int64)
        except KeyError as error:
            raise CheckpointError(
                f"The model's phone list lacks {shown(error.args[0])}; use the vocab.txt that came with the model."
            ) from error


def labels(
    phones: Sequence[TimedPhone], frames: int, vocabulary: PhoneVocabulary, rate: int = 24000, hop: int = 256
) -> np.ndarray:
    """(frames,) int64 indices of the phones at the middle of each mel frame, ``(i + 0.5) · hop / rate`` seconds. Frames
    after the last phone get the last phone."""
    ends = np.array([end for _, _, end in phones])
    middles = (np.arange(frames) + 0.5) * hop / rate
    sounding = np.searchsorted(ends, middles, side="right").clip(max=len(phones) - 1)
    return vocabulary.ids(phone for phone, _, _ in phones)[sounding]
