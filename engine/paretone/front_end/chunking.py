"""Cut long text into pieces that a model can speak: at sentences if possible, then clauses, then words."""

from __future__ import annotations

import re
from collections.abc import Callable

from paretone.front_end.writing import LONGEST_WORD, TITLES
from paretone.observer import may_stop

PIECE_SECONDS = 6.0
"""Maximum new speech per piece; the models were trained on up to ten seconds, prompt included."""
FIRST_PIECE_SECONDS = 3.5

_NEVER_LAST = re.compile(rf"(?:\b(?:{'|'.join(TITLES)}|St|Dr|No|Nos|pp?|[A-Z])|\b(?:e\.g|i\.e|et al))\.$")
_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’)\]]*\s+|\n\s*\n")
_CLAUSE_END = re.compile(r"[,;:–—)…]+[\"'”’]*\s+|\s[-–—]+\s")


def sentences(text: str) -> list[str]:
    """Cut ``text`` after full stops, question and exclamation marks and at empty lines; not after "Dr." or initials."""
    found: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        before = text[start : match.end()].rstrip()
        after = text[match.end() : match.end() + 1]
        if "\n" not in match[0] and (_NEVER_LAST.search(before[-12:]) or after.islower()):
            continue
        if before.strip():
            found.append(before.strip())
        start = match.end()
    rest = text[start:].strip()
    return [*found, rest] if rest else found


def chunks(text: str, seconds: Callable[[str], float], budget: float, first_budget: float | None = None) -> list[str]:
    """Cut ``text`` into as few chunks of whole sentences as possible, of at most ``budget`` seconds each.

    ``seconds`` estimates the duration of a piece. A sentence over the budget is cut at commas and the like, and a
    clause over the budget at words. ``first_budget`` is a smaller budget for the first chunk, for an earlier start; it
    cuts sentences only at commas.
    """
    limit = min(budget, first_budget or budget)
    packed: list[str] = []
    pending = ""
    queue = sentences(text)[::-1]
    while queue:
        may_stop()
        piece = queue.pop()
        joined = f"{pending} {piece}" if pending else piece
        if seconds(joined) <= limit:
            pending = joined
            continue
        if pending:
            packed.append(pending)
            pending, limit = "", budget
            queue.append(piece)
            continue
        parts = _cut_after(_CLAUSE_END, piece)
        if len(parts) == 1 and seconds(piece) > budget:
            parts = _shorten(piece, seconds, budget)
        if len(parts) > 1:
            queue.extend(parts[::-1])
        else:
            packed.append(piece)
            limit = budget
    return [*packed, pending] if pending else packed


def _shorten(piece: str, seconds: Callable[[str], float], budget: float) -> list[str]:
    """Cut ``piece`` into even runs of words within the budget; cut a single word between characters."""
    words = piece.split()
    if len(words) > 1:
        count = min(len(words), int(seconds(piece) / budget) + 1)
        return [" ".join(words[len(words) * n // count : len(words) * (n + 1) // count]) for n in range(count)]
    if len(piece) > LONGEST_WORD:
        return [piece[start : start + LONGEST_WORD] for start in range(0, len(piece), LONGEST_WORD)]
    half = len(piece) // 2
    return [piece[:half], piece[half:]] if half > 10 else [piece]


def _cut_after(pattern: re.Pattern[str], text: str) -> list[str]:
    ends = [match.end() for match in pattern.finditer(text)]
    return [
        part.strip()
        for part in (text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True))
        if part.strip()
    ]
