"""A sentence in words and marks of punctuation, split as the tagger of parts of speech learnt it.

Marks at either end of a word are their own tokens, contractions are two ("do", "n't"), and so are both parts and the
hyphen of a compound. What belongs together has no blank in between (:attr:`Token.blank`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from paretone.front_end.natural.phones import PUNCTUATION

_HEARD = frozenset(PUNCTUATION) - frozenset('"“”')
"""The teacher reads over quotation marks."""
_DASHES = ("-", "–", "—", "--", "---")
_BRACKETS = {"(": "(", "[": "(", "{": "(", ")": ")", "]": ")", "}": ")"}
_LEADING = re.compile(r"\.{2,}|-{2,}|[\"“”«»'‘(\[{)\]}.,;:!?…—–]")
_TRAILING = re.compile(r"(?:\.{2,}|-{2,}|[\"“”«»')\]}(\[{,;:!?…—–.])$")
_INSIDE = re.compile(r"\.{2,}|…|-{2,}|(?<=\w)[-–—~/:;,?!](?=\w)|—|(?<=[a-z])\.(?=[A-Z])|[()\[\]\"“”]")
_CLIPPED = re.compile(
    r"'(?:em|cause|til|bout|tis|twas|twere|round|n|nother|fraid|neath|nuff|tween|gainst)\b", re.IGNORECASE
)
_CONTRACTED = re.compile(r"(?<=\w)(?:n't|'(?:s|ll|re|ve|d|m))$", re.IGNORECASE)
_NOT = frozenset(
    "ai are ca could dare did do does had has have is may might must need ought sha should was were wo would".split()
)
_JOINED = {"cannot": 3, "gonna": 3, "gotta": 3}
"""Words that the tagger knows as two, with the length of the first."""
_DOTTED = re.compile(r"(?:\w\.){2,}|[A-Za-z]\.", re.ASCII)
_SECOND_DOT = re.compile(r"(?<=\b\w\.)\.$")
"""Of an abbreviation at the end of a sentence."""


@dataclass
class Token:
    """A word, a part of one, or a mark."""

    text: str
    blank: bool = False
    """Whether a blank follows."""
    mark: str | None = None
    """How punctuation is written in phonemes; ``None`` for words."""


def tokens(text: str) -> list[Token]:
    """The tokens of a sentence."""
    found: list[Token] = []
    quoted = False
    for chunk in text.split():
        if chunk in _DASHES:
            found.append(Token(chunk, True, "—"))
            continue
        before, inside, after = _peeled(chunk)
        parts = [Token(mark, mark=_mark(mark)) for mark in before]
        quoted = quoted or "'" in before
        parts += (Token(part, mark=_inner(part)) for part in _parts(inside))
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


def _peeled(chunk: str) -> tuple[list[str], str, list[str]]:
    """Marks in front of a word, the word, and the marks after it."""
    before: list[str] = []
    after: list[str] = []
    while (match := _LEADING.match(chunk)) and not _CLIPPED.match(chunk):
        before.append(match[0])
        chunk = chunk[match.end() :]
    while (match := _TRAILING.search(chunk)) and not _DOTTED.fullmatch(chunk):
        match = _SECOND_DOT.search(chunk) or match
        after.append(match[0])
        chunk = chunk[: match.start()]
    return before, chunk, after[::-1]


def _parts(word: str) -> Iterator[str]:
    start = 0
    for match in _INSIDE.finditer(word):
        yield from _split_contraction(word[start : match.start()])
        yield match[0]
        start = match.end()
    yield from _split_contraction(word[start:])


def _split_contraction(word: str) -> Iterator[str]:
    match = _CONTRACTED.search(word)
    if match and (match[0].lower() != "n't" or word[: match.start()].lower() in _NOT):
        yield from (*_split_contraction(word[: match.start()]), match[0])
    elif word.lower() in _JOINED:
        yield from (word[: _JOINED[word.lower()]], word[_JOINED[word.lower()] :])
    elif word:
        yield word


def _inner(part: str) -> str | None:
    """The mark that ``part`` is inside of a word, where a hyphen is none."""
    return None if part in ("-", "~", "/", "'") or any(one.isalnum() for one in part) else _mark(part)


def _mark(mark: str) -> str:
    """How ``mark`` is heard; empty if it is not."""
    heard = "—" if mark in _DASHES else _BRACKETS.get(mark, mark)
    return heard if set(heard) <= _HEARD else ""
