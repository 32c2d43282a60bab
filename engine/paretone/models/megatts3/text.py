"""A text in segments that MegaTTS 3 can be given: its language, numbers written out, cut where the official code cuts.

Rules of ``tts/infer_cli.py`` and ``tts/utils/text_utils/split_text.py``. Upstream takes whatever is not English for
Chinese; here another language is an error. Upstream normalises with WeTextProcessing, which needs a build of OpenFst:
it is used if it is installed, otherwise our own rules are, for English. Torch-free.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from paretone.errors import TextError
from paretone.front_end.speakable import CHINESE, ENGLISH, HAN, WORD, language_of, name_characters
from paretone.front_end.writing import write_out
from paretone.models.f5.text import split

ENGLISH_BYTES = 130
CHINESE_CHARACTERS, LOOK_AHEAD = 60, 30
MARKS = ("。.！!？?", "，,；;：:", "、…—-~～")
"""Marks at which Chinese is cut: at the first of these if there is one near, else at the second, else at the third."""
FULL_WIDTH = dict(zip(".,!?;:", "。，！？；：", strict=True))
LONGEST_TOKENS, LONGEST_BYTES = 240, 300
"""Estimated tokens above which a segment is cut again, so that the grapheme model, which writes 256 at most, can finish
it, and the bytes it is cut to. Upstream loses the rest of such a segment."""

_HALF_WIDTH = re.compile(r"(?<!\d)[.,!?;:]|[.,!?;:](?!\d)")


@dataclass(frozen=True)
class ReadText:
    """A text, ready for the grapheme model."""

    language: str
    segments: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Things the user should know, as sentences."""


def read_text(text: str) -> ReadText:
    """Normalise and cut ``text``. Raises :class:`TextError` when it is empty or in another language."""
    if not text.strip():
        raise TextError("There is no text to speak; type a sentence.")
    language = language_of(text, "MegaTTS 3 speaks only English and Chinese")
    spoken, notes = _normalised(text, language)
    if not any(map(str.isalnum, spoken)):
        raise TextError("Nothing in this text can be spoken; type a sentence in English or Chinese.")
    pieces = split(spoken, ENGLISH_BYTES) if language == ENGLISH else split_chinese(spoken)
    segments = [part for piece in pieces for part in _finishable(piece) if any(map(str.isalnum, part))]
    return ReadText(language, tuple(segments), notes)


def _normalised(text: str, language: str) -> tuple[str, tuple[str, ...]]:
    official = _official_normaliser(language)
    if official is not None:
        return official(text), ()
    if language == CHINESE:
        digits = any(map(str.isdigit, text))
        note = (
            "Numbers in the text were left as they are, which the model may misread; to have them written out, install "
            "WeTextProcessing, or write them in words."
        )
        return text.strip(), (note,) if digits else ()
    result = write_out(text)
    notes = []
    if WORD.findall(result.text.lower()) != WORD.findall(text.lower()):
        notes.append(
            "Numbers and abbreviations were written out by Paretone's own rules, because WeTextProcessing, which the "
            "official code uses, is not installed."
        )
    if result.dropped:
        notes.append(f"Characters that cannot be spoken were left out: {name_characters(result.dropped)}.")
    return result.text, tuple(notes)


@functools.lru_cache(maxsize=2)
def _official_normaliser(language: str) -> Callable[[str], str] | None:
    """WeTextProcessing with the official options, if it is installed."""
    try:
        if language == ENGLISH:
            from tn.english.normalizer import Normalizer

            return Normalizer(overwrite_cache=False).normalize
        from tn.chinese.normalizer import Normalizer

        return Normalizer(overwrite_cache=False, remove_erhua=False, remove_interjections=False).normalize
    except ImportError:
        return None


def split_chinese(text: str, limit: int = CHINESE_CHARACTERS, ahead: int = LOOK_AHEAD) -> list[str]:
    """Cut ``text`` wherever ``limit`` Chinese characters have come together, at the best mark less than ``ahead``
    characters further or anywhere before, and make the marks that are not within numbers full-width."""
    pieces = []
    start = place = 0
    while place < len(text):
        if len(HAN.findall(text, start, place + 1)) >= limit:
            end = _best_end(text, start, place, ahead)
            pieces.append(text[start:end])
            start, place = end, max(place, end - 1)
        place += 1
    if start < len(text):
        pieces.append(text[start:])
    return [_HALF_WIDTH.sub(lambda mark: FULL_WIDTH[mark[0]], piece) for piece in pieces]


def _best_end(text: str, start: int, place: int, ahead: int) -> int:
    for marks in MARKS:
        for end in (*range(place + 1, min(place + ahead, len(text))), *range(place, start - 1, -1)):
            if text[end] in marks:
                return end + 1
    return place + 1


def _finishable(piece: str) -> list[str]:
    """``piece``, cut again where the grapheme model could not finish it."""
    han = len(HAN.findall(piece))
    return (
        split(piece, LONGEST_BYTES, break_long=True) if 2 * han + 0.8 * (len(piece) - han) > LONGEST_TOKENS else [piece]
    )
