"""Semiotic classes: what a text has in other than plain words, and how each kind is said.

A class has a pattern and a verbaliser, which sees the match and the text around it, may decline, and gives words;
quantities keep number and unit apart, so that a range is any quantity to any other ("$5-10", "3–4 pm").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """Words of a token; of a quantity, number and unit apart."""

    words: str
    unit: str = ""
    """Follows the words: "dollars", "P.M."."""
    before: str = ""
    """Precedes the words: "November"."""
    ends: bool = False
    """Whether its full stop may also end a sentence."""
    kind: str = ""
    """A finer class than that of the pattern."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.before, self.words, self.unit)))


@dataclass(frozen=True)
class Around:
    """The text around a match."""

    before: str
    """Up to 40 characters."""
    after: str
    british: bool

    def follows(self, pattern: str) -> bool:
        return re.search(rf"(?:{pattern})$", self.before) is not None

    def precedes(self, pattern: str) -> bool:
        return re.match(pattern, self.after) is not None


@dataclass(frozen=True)
class Token:
    """Part of a text."""

    kind: str
    """Its semiotic class; empty for plain words and marks."""
    text: str
    words: str
    ends: bool = False


Verbaliser = Callable[[re.Match[str], Around], "Said | str | None"]


@dataclass(frozen=True)
class SemioticClass:
    name: str
    pattern: re.Pattern[str]
    say: Verbaliser
    quantity: bool = False
    """Whether it can be an end of a range."""


def one_of(words: Iterable[str]) -> str:
    """Pattern of any of ``words``, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def semiotic(name: str, *pattern: str, say: Verbaliser, quantity: bool = False) -> SemioticClass:
    """A class with its ``pattern`` in parts."""
    return SemioticClass(name, re.compile("".join(pattern)), say, quantity)
