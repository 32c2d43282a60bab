"""Preparation of OmniVoice's text before tokenisation. Torch-free.

Source: ``_combine_text`` and ``_tokenize_with_nonverbal_tags`` of k2-fsa/OmniVoice and ``omnivoice/utils/text.py``.
"""

from __future__ import annotations

import re

from paretone.front_end import chunking
from paretone.models.omnivoice.tables import tables
from paretone.models.omnivoice.tags import is_chinese

SHORTEST_CHUNK = 3
"""Characters below which a piece of text joins its neighbour."""
_NEXT_TO_CHINESE = re.compile(r"(?<=[\u4e00-\u9fff])\s+|\s+(?=[\u4e00-\u9fff])")


def combined(text: str, reference: str = "") -> str:
    """``text`` after what the ``reference`` says, on one line, with plain parentheses and no idle blanks."""
    whole = f"{reference.strip()} {text.strip()}" if reference else text.strip()
    whole = re.sub(r"[\r\n]+", "", whole).replace("（", "(").replace("）", ")")
    return _NEXT_TO_CHINESE.sub("", re.sub(r"[ \t]+", " ", whole))


def ended(text: str) -> str:
    """``text`` with a full stop where nothing ends it."""
    text = text.strip()
    if not text or text[-1] in tables().end_punctuation:
        return text
    return f"{text}{'。' if is_chinese(text) else '.'}"


def segments(text: str) -> list[str]:
    """``text`` cut before and after every tag that stands for a sound: those are tokenised separately, so that they
    are always the same tokens."""
    return [one for one in re.split(f"({tables().nonverbal.replace('(', '(?:')})", text) if one]


def chunks(text: str, longest: int, shortest: int = SHORTEST_CHUNK) -> list[str]:
    """``text`` cut after punctuation into pieces of at most ``longest`` characters where its sentences allow that. One
    of less than ``shortest`` joins the piece before it, the first one the piece after."""
    packed: list[str] = []
    for clause in _clauses(text):
        if packed and len(packed[-1]) + len(clause) <= longest:
            packed[-1] += clause
        else:
            packed.append(clause)
    joined: list[str] = []
    for number, piece in enumerate(packed):
        after_a_short_first = number == 1 and len(packed[0]) < shortest
        if joined and (after_a_short_first or len(piece) < shortest):
            joined[-1] += piece
        else:
            joined.append(piece)
    return [piece.strip() for piece in joined if piece.strip()]


def sentences(text: str) -> list[str]:
    """``text`` cut into its sentences, Chinese and Japanese ones among them."""
    parts = (re.split(r"(?<=[。！？])(?![。！？”’」』）])", one) for one in chunking.sentences(text))
    return [part.strip() for found in parts for part in found if part.strip()]


def is_spoken(text: str) -> bool:
    """Whether there is anything in ``text`` to be heard."""
    return any(map(str.isalnum, text))


def _clauses(text: str) -> list[str]:
    """``text`` after each of its punctuation marks, with the marks that follow; not after abbreviations."""
    known = tables()
    marks = known.split_punctuation | known.closing_marks
    found: list[str] = []
    current = ""
    for one in text:
        if not current and found and one in marks:
            found[-1] += one
            continue
        current += one
        if one in known.split_punctuation and not (one == "." and _is_abbreviation(current)):
            found.append(current)
            current = ""
    return [*found, current] if current else found


def _is_abbreviation(text: str) -> bool:
    words = text.split()
    return bool(words) and words[-1] in tables().abbreviations
