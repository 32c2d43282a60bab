"""Parts of speech of words in a sentence, for words that are pronounced by them ("read", "live", "record").

An averaged perceptron (Collins, "Discriminative training methods for hidden Markov models", EMNLP 2002) that reads
from left to right, with the tags of the Penn Treebank. Its weights are those of hibari-tts's tagger, which learnt from
spaCy's; see ``NOTICE`` next to the file.
"""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from paretone.front_end.natural.files import bundled, unreadable

FILE = "tagger.npz"
STEP = 0.1
"""What one unit of a stored weight is."""
_BEFORE, _AFTER = ("-START2-", "-START-"), ("-END-", "-END2-")


class Tagger:
    """The trained tagger."""

    def __init__(
        self,
        tags: Sequence[str],
        rows: dict[str, int],
        weights: np.ndarray,
        frequent: set[str],
        settled: dict[str, str],
    ) -> None:
        """``weights`` (features, tags) of the features in ``rows``; ``tags`` in alphabetical order. ``frequent`` words
        are told to it as they are, others by their shape; ``settled`` words have one tag."""
        self._tags, self._rows, self._weights = tuple(tags), rows, weights
        self._frequent, self._settled = frequent, settled

    @classmethod
    def load(cls, path: Path) -> Tagger:
        """Read the file that :mod:`paretone.training.recipes.natural_front_end` wrote. Raises
        :class:`paretone.errors.CheckpointError`."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                return cls(
                    stored["tags"].tolist(),
                    {feature: row for row, feature in enumerate(_lines(stored["features"]))},
                    stored["weights"],
                    set(_lines(stored["frequent"])),
                    dict(line.split("\t") for line in _lines(stored["settled"])),
                )
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise unreadable(path, error) from error

    def __call__(self, words: Sequence[str]) -> list[str]:
        """The tag of each of ``words``, the words and punctuation of a sentence."""
        told = (*_BEFORE, *map(self._told, words), *_AFTER)
        tags = list(_BEFORE)
        for place, word in enumerate(words):
            tags.append(self._settled.get(word) or self._likeliest(_features(place, word, told, tags[-1], tags[-2])))
        return tags[2:]

    def _likeliest(self, features: Iterator[str]) -> str:
        rows = [self._rows[feature] for feature in features if feature in self._rows]
        scores = self._weights[rows].sum(0, dtype=np.int32)
        return self._tags[len(scores) - 1 - int(scores[::-1].argmax())] if rows else "NN"

    def _told(self, word: str) -> str:
        plain = _class(word)
        return plain if plain in self._frequent else f"<{_shape(word)}>"


def _lines(stored: np.ndarray) -> list[str]:
    return stored.tobytes().decode().split("\n")


def _features(place: int, word: str, told: Sequence[str], tag: str, earlier: str) -> Iterator[str]:
    """What the tag of ``word`` depends on: itself, two words on either side, and the two tags before it (``tag``
    the nearer). ``told`` has two entries before the first word."""
    here = place + 2
    yield "b"
    yield "i+" if place else "i0"
    yield f"p1={word[0]}"
    yield f"s3={word[-3:]}"
    yield f"sh={_shape(word)}"
    yield f"t-1={tag}"
    yield f"t-2={earlier}"
    yield f"t-12={tag},{earlier}"
    yield f"w={told[here]}"
    for distance in (1, 2):
        yield f"w-{distance}={told[here - distance]}"
        yield f"w+{distance}={told[here + distance]}"
    yield f"s3-1={told[here - 1][-3:]}"
    yield f"s3+1={told[here + 1][-3:]}"


def _class(word: str) -> str:
    if "-" in word[1:] and word[0] != "-":
        return "!HYPHEN"
    if word[0].isdigit():
        return "!YEAR" if word.isdigit() and len(word) == 4 else "!DIGITS"
    return word.lower()


def _shape(word: str) -> str:
    if word.isdigit():
        return "d"
    if not word.isalpha():
        return "".join("d" if one.isdigit() else "x" if one.isalpha() else one for one in word[:4])
    if word.islower():
        return "x"
    if word.isupper():
        return "XX" if len(word) > 1 else "X1"
    return "Xx" if word[0].isupper() and word[1:].islower() else "xX"


@functools.lru_cache(maxsize=1)
def default_tagger() -> Tagger:
    """The bundled tagger, read once."""
    return Tagger.load(bundled(FILE))
