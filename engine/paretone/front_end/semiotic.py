"""Semiotic classes: what a text has in other than plain words, and how each kind is said.

A class has a pattern and a verbaliser, which sees the match and the text around it, may decline, and gives words;
quantities keep number and unit apart, so that a range is any quantity to any other ("$5-10", "3–4 pm").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from paretone.front_end.numbers import cardinal, digits, pairs, short

compiled = cache(re.compile)
"""There are more patterns than ``re`` keeps."""


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
        return compiled(rf"(?:{pattern})$").search(self.before) is not None

    def precedes(self, pattern: str) -> bool:
        return compiled(pattern).match(self.after) is not None


@dataclass(frozen=True)
class Token:
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


class _Group(str):
    """A group of a match in a template of words: "{1:pairs} {1:cup/cups}"."""

    def __format__(self, form: str) -> str:
        one, both, many = form.partition("/")
        if both:
            return one if re.match(r"1$|\d+[/⁄]", self) else many
        return FORMS[form](str(self)) if form and self else str(self)


def _filled(template: str, groups: Sequence[str]) -> str:
    """Parts in square brackets are left out if their groups are empty."""
    found = ""
    for part in re.split(r"(\[.*?\])", template):
        if part[:1] != "[" or any(groups[int(one)] for one in re.findall(r"\{(\d)", part)):
            found += part.strip("[]").format(*groups)
    return found


FORMS: dict[str, Callable[[str], str]] = {
    "cardinal": lambda text: cardinal(int(text)),
    "pairs": pairs,
    "digits": digits,
    "short": short,
    "upper": str.upper,
    "letters": lambda text: ".".join(text.upper()) + "." * (len(text) > 1),
}
"""How a template says a group."""


def semiotic(
    name: str,
    *pattern: str,
    say: Verbaliser | str | Mapping[str, str],
    quantity: bool = False,
    after: str = "",
    unless: str = "",
    ends: bool = False,
) -> SemioticClass:
    """A class with its ``pattern`` in parts. ``say``: a verbaliser, a template of words ("{1:cardinal}[ to {2:year}]"),
    of a quantity also of what precedes it and of its unit ("{1:month}|{2:day}|"), or the words of each first group
    (without groups, of each match). It declines unless it stands ``after`` one pattern, and where it follows another
    (``unless``)."""

    def words(match: re.Match[str], around: Around) -> Said | str | None:
        if (after and not around.follows(after)) or (unless and around.follows(unless)):
            return None
        if callable(say):
            return say(match, around)
        groups = [_Group(one or "") for one in (match[0], *match.groups())]
        found = _filled(say, groups) if isinstance(say, str) else say[next(filter(None, groups[1:]), groups[0])]
        before, found, unit = found.split("|") if isinstance(say, str) and "|" in say else ("", found, "")
        return Said(found, unit, before, ends)

    return SemioticClass(name, re.compile("".join(pattern)), words, quantity)
