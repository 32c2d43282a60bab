"""Long text in pieces: where F5 cuts a text (``infer/utils_infer.py``)."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_SECONDS = 22.0
"""Prompt and new speech together that one piece may last, at the prompt's rate of speech."""
DEFAULT_MAXIMUM = 135
"""Bytes of a piece where no prompt says otherwise."""

_SENTENCE_ENDS = re.compile(r"(?<=[;:,.!?])\s+|(?<=[；：，。！？])")


def maximum_bytes(transcript: str, prompt_seconds: float, speed: float = 1.0) -> int:
    """UTF-8 bytes that one piece may have: what the speaker of the prompt says in the time that the prompt leaves free.

    Zero or less for prompts of 22 s and more, which makes every sentence its own piece.
    """
    return int(len(transcript.encode()) / prompt_seconds * (LONGEST_SECONDS - prompt_seconds) * speed)


def split(text: str, maximum: int = DEFAULT_MAXIMUM, break_long: bool = False) -> list[str]:
    """Cut ``text`` after punctuation and join what fits into pieces of at most ``maximum`` bytes, stripped.

    A clause that alone is longer stays whole, as in the official code, unless ``break_long`` is set: then it is cut
    between words, or between characters if there are no spaces.
    """
    clauses = _SENTENCE_ENDS.split(text)
    if break_long and maximum > 0:
        clauses = [part for clause in clauses for part in _broken(clause, maximum)]
    pieces = []
    current = ""
    for clause in clauses:
        if len(current.encode()) + len(clause.encode()) <= maximum:
            current += _spaced(clause)
        else:
            if current:
                pieces.append(current.strip())
            current = _spaced(clause)
    if current:
        pieces.append(current.strip())
    return pieces


def split_for_streaming(text: str, maximum: int, break_long: bool = False) -> list[str]:
    """As :func:`split`, but with a short beginning, so that it is heard sooner: the first piece is cut again at half
    the maximum and then its first again at a quarter, as the official socket server does."""
    pieces = split(text, maximum, break_long)
    for part in (2, 4):
        if pieces:
            pieces = [*split(pieces[0], maximum // part), *pieces[1:]]
    return pieces


def _spaced(clause: str) -> str:
    return f"{clause} " if clause and clause[-1].isascii() else clause


def _broken(clause: str, maximum: int) -> Iterable[str]:
    """``clause`` in parts of at most ``maximum`` bytes (at least a character each), cut between words if it has any."""
    words = re.findall(r"\S+\s*", clause) if len(clause.encode()) > maximum else [clause]
    part = ""
    for word in words:
        for token in [word] if len(word.encode()) <= maximum else word:
            if part and len((part + token).strip().encode()) > maximum:
                yield part.strip()
                part = ""
            part += token
    yield part.strip() if len(words) > 1 else part
