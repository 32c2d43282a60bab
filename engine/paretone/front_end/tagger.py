"""Tag parts of speech, for words whose pronunciation depends on them ("read", "live", "record").

An averaged perceptron (Collins, "Discriminative training methods for hidden Markov models", EMNLP 2002) that reads from
left to right, with the tags of the Penn Treebank. Its weights are those of hibari-tts's tagger, trained on spaCy's
output; see ``NOTICE`` next to the file.
"""

from __future__ import annotations

import functools
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paretone.front_end.lexicon import bundled, unreadable
from paretone.front_end.phones import PUNCTUATION

# --- Words and punctuation marks of a sentence, as in the tagger's training -------------------------------------------
# Marks at either end of a word are separate tokens; contractions are two ("do", "n't"), and both parts and the hyphen
# of a compound are three. :attr:`Token.blank` tells whether a blank follows.
_HEARD = frozenset(PUNCTUATION) - frozenset('"“”')
"""Audible marks; the teacher ignores quotation marks."""
_DASHES = ("-", "–", "—", "--", "---")
_BRACKETS = {"(": "(", "[": "(", "{": "(", ")": ")", "]": ")", "}": ")"}
_LEADING = r"\.{2,}|-{2,}|[\"“”«»'‘(\[{)\]}.,;:!?…—–]"
_TRAILING = r"(?<=\b\w)\.(?=\.(?!\.))|\.{2,}|-{2,}|[\"“”«»')\]}(\[{,;:!?…—–.]"
_CLIPPED = r"(?i:'(?:em|cause|til|bout|tis|twas|twere|round|n|nother|fraid|neath|nuff|tween|gainst)\b)"
_DOTTED = r"(?a:(?:\w\.){2,}|[A-Za-z]\.)"
_CHUNK = re.compile(
    rf"((?:(?!{_CLIPPED})(?>{_LEADING}))*+)({_DOTTED}(?!\.\.)(?=(?>{_TRAILING})*+$)|.*?)((?>{_TRAILING})*+)$"
)
"""Marks before a word, the word, with the full stop of an abbreviation, and marks after it. Possessive, so that
the time of many dots does not double with each."""
_INSIDE = re.compile(r"(\.{2,}|…|-{2,}|(?<=\w)[-–—~/:;,?!](?=\w)|—|(?<=[a-z])\.(?=[A-Z])|[()\[\]\"“”])")
_CONTRACTED = re.compile(r"(?<=\w)(?:n't|'(?:s|ll|re|ve|d|m))$", re.IGNORECASE)
_NOT = frozenset(
    "ai are ca could dare did do does had has have is may might must need ought sha should was were wo would".split()
)
_JOINED = re.compile(r"(?<=^can)(?=not$)|(?<=^gon)(?=na$)|(?<=^got)(?=ta$)", re.IGNORECASE)


@dataclass
class Token:
    """A word, a part of one, or a mark."""

    text: str
    blank: bool = False
    """Whether a blank follows."""
    mark: str | None = None
    """The mark in phonemes; ``None`` for words."""


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    quoted = False
    for chunk in text.split():
        if chunk in _DASHES:
            found.append(Token(chunk, True, "—"))
            continue
        match = _CHUNK.match(chunk)
        assert match is not None
        before, after = re.findall(_LEADING, match[1]), re.compile(_TRAILING).findall(chunk, match.start(3))
        parts = [Token(mark, mark=_mark(mark)) for mark in before]
        quoted = quoted or "'" in before
        for number, part in enumerate(_INSIDE.split(match[2])):
            parts += (Token(one, mark=_inner(one)) for one in ([part] if number % 2 else _split_contraction(part)))
        for mark in after:
            if mark == "'" and not quoted and parts:
                parts.append(Token("'"))
                continue
            quoted = quoted and mark != "'"
            parts.append(Token(mark, mark=_mark(mark)))
        if parts:
            parts[-1].blank = True
            found += parts
    if found:
        found[-1].blank = False
    return found


def _split_contraction(word: str) -> Iterator[str]:
    match = _CONTRACTED.search(word)
    if match and (match[0].lower() != "n't" or word[: match.start()].lower() in _NOT):
        yield from (*_split_contraction(word[: match.start()]), match[0])
    elif word:
        yield from _JOINED.split(word)


def _inner(part: str) -> str | None:
    """The mark that ``part`` stands for inside a word, where a hyphen is not a mark."""
    return None if part in ("-", "~", "/", "'") or any(one.isalnum() for one in part) else _mark(part)


def _mark(mark: str) -> str:
    """How ``mark`` is heard; empty if it is silent."""
    heard = "—" if mark in _DASHES else _BRACKETS.get(mark, mark)
    return heard if set(heard) <= _HEARD else ""


FILE = "tagger.npz"
STEP = 0.1
"""Unit of a stored weight."""
_BEFORE, _AFTER = ("-START2-", "-START-"), ("-END-", "-END2-")


class Tagger:
    def __init__(
        self,
        tags: Sequence[str],
        rows: dict[str, int],
        weights: np.ndarray,
        frequent: set[str],
        settled: dict[str, str],
    ) -> None:
        """``weights`` (features, tags) of the features in ``rows``; ``tags`` in alphabetical order. ``frequent`` words
        are features themselves, others by their shape; ``settled`` words have one tag."""
        self._tags, self._rows, self._weights = tuple(tags), rows, weights
        self._frequent, self._settled = frequent, settled

    @classmethod
    def load(cls, path: Path) -> Tagger:
        """Read the file written by :mod:`tests.tools.natural_front_end`. Raises :class:`CheckpointError`."""
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
        """Tag the ``words`` and punctuation of a sentence."""
        told = (*_BEFORE, *map(self._told, words), *_AFTER)
        tags = list(_BEFORE)
        for place, word in enumerate(words):
            tag = self._settled.get(word, "")
            if not tag:
                features = _features(place, word, told, tags[-1], tags[-2])
                rows = [self._rows[feature] for feature in features if feature in self._rows]
                scores = self._weights[rows].sum(0, dtype=np.int32)
                tag = self._tags[len(scores) - 1 - int(scores[::-1].argmax())] if rows else "NN"
            tags.append(tag)
        return tags[2:]

    def _told(self, word: str) -> str:
        plain = "!HYPHEN" if "-" in word[1:] and word[0] != "-" else word.lower()
        return plain if plain in self._frequent else f"<{_shape(word)}>"


def _lines(stored: np.ndarray) -> list[str]:
    return stored.tobytes().decode().split("\n")


def _features(place: int, word: str, told: Sequence[str], tag: str, earlier: str) -> Iterator[str]:
    """Features of ``word``: itself, two words on either side, and the two tags before it (``tag`` is the nearer).
    ``told`` has two entries before the first word."""
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


def _shape(word: str) -> str:
    if not word.isalpha():
        return "".join("d" if one.isdigit() else "x" if one.isalpha() else one for one in word[:4])
    if word.islower():
        return "x"
    if word.isupper():
        return "XX" if len(word) > 1 else "X1"
    return "Xx" if word[0].isupper() and word[1:].islower() else "xX"


@functools.lru_cache(maxsize=1)
def default_tagger() -> Tagger:
    return Tagger.load(bundled(FILE))
