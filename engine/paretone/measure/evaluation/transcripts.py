"""Errors in transcripts: both texts are normalised alike, by a normaliser with a name and a version. Torch-free."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from paretone.errors import PlainError, TextError
from paretone.extras import needing
from paretone.measure.evaluation.judges import Verdict
from paretone.measure.intelligibility import words_of
from paretone.reading import shown

_CHINESE = "".join(map(chr, [*range(0x3001, 0x3004), *range(0x3008, 0x3012), *range(0x3014, 0x3020)]))
_WIDE = "".join(
    map(chr, [*range(0xFF01, 0xFF10), *range(0xFF1A, 0xFF21), *range(0xFF3B, 0xFF41), *range(0xFF5B, 0xFF65)])
)
PUNCTUATION = frozenset(string.punctuation + _CHINESE + _WIDE + "\u3000〰〾〿–—‘’‛“”„‟…‧﹏﹑﹔·") - {"'"}
"""Punctuation removed from texts: ASCII's and Chinese."""


@dataclass(frozen=True)
class Normaliser:
    """Applied to a text and its transcript before errors are counted. A change of what one does takes another version:
    error rates by different ones are not comparable."""

    name: str
    version: int
    apply: Callable[[str], str]
    """To units, words or characters, separated by blanks."""

    @property
    def id(self) -> str:
        return f"{self.name} {self.version}"


def _words(text: str) -> str:
    """Lower case, without punctuation except apostrophes; two spaces around a removed mark become one."""
    return "".join(letter for letter in text if letter not in PUNCTUATION).replace("  ", " ").lower().strip()


def _characters(text: str) -> str:
    """Simplified characters of one width, numbers as they are read, no punctuation; a blank between characters."""
    with needing(PlainError, "Judging Chinese needs zhconv, which is not installed; run: pip install zhconv"):
        from zhconv import convert
    text = convert(unicodedata.normalize("NFKC", text), "zh-cn").lower()
    text = re.sub(r"(\d+(?:\.\d+)?)%", lambda found: f"百分之{found[1]}", text)
    text = re.sub(r"\d+(?=年)", lambda found: _digits(found[0]) if len(found[0]) == 4 else found[0], text)
    text = re.sub(r"(\d+)(?:\.(\d+))?", lambda found: _read(found[1], found[2] or ""), text)
    kept = (letter for letter in text if letter not in PUNCTUATION and not letter.isspace())
    # Two words for two, and two characters for zero.
    return " ".join(kept).replace("〇", "零").replace("两", "二")


_FIGURES = "零一二三四五六七八九"


def _digits(number: str) -> str:
    return "".join(_FIGURES[int(digit)] for digit in number)


def _read(whole: str, part: str) -> str:
    """A number in characters; longer ones and those that begin with zero digit by digit, as codes are read."""
    long = len(whole) > 12 or (len(whole) > 1 and whole[0] == "0")
    read = _digits(whole) if long else _integer(int(whole))
    return f"{read}点{_digits(part)}" if part else read


def _integer(number: int) -> str:
    if number == 0:
        return _FIGURES[0]
    parts, place = "", 0
    while number:
        number, group = divmod(number, 10_000)
        if group:
            parts = _group(group, bool(number)) + ("", "万", "亿")[place] + parts
        elif parts and not parts.startswith("零"):
            parts = "零" + parts
        place += 1
    return parts.removeprefix("一") if parts.startswith("一十") else parts


def _group(number: int, follows: bool) -> str:
    """A number below 10,000; ``follows``: after a higher group, so that a missing thousand is a zero."""
    read = ""
    for digit, unit in zip(f"{number:04d}", ("千", "百", "十", ""), strict=True):
        if digit != "0":
            read += _FIGURES[int(digit)] + unit
        elif (read or follows) and not read.endswith("零"):
            read += "零"
    return read.rstrip("零")


SEED_TTS_EN = Normaliser("seed-tts-eval-en", 1, _words)
"""As Seed-TTS's evaluation does for English."""
CHINESE = Normaliser("paretone-zh", 1, _characters)
"""As Seed-TTS's evaluation does for Chinese, and in addition width and numbers."""

WORDS = Normaliser("paretone-words", 1, lambda text: " ".join(words_of(text)))
"""What pocketsphinx is asked for: lower case, letters and apostrophes."""


def is_chinese(text: str) -> bool:
    return bool(re.search(r"[\u3400-\u9fff]", text))


def normaliser_of(text: str, judge: str = "") -> Normaliser:
    """Normaliser of a text and of what ``judge`` heard of it: its own, or by the script of the text."""
    if judge == "words":
        return WORDS
    return CHINESE if is_chinese(text) else SEED_TTS_EN


def counted(judge: str, text: str, heard: str) -> Verdict:
    """Errors in ``heard`` of ``text``: of words or, for Chinese, of characters, both normalised alike. Raises
    :class:`TextError` for a text without words."""
    import jiwer

    normaliser = normaliser_of(text, judge)
    words = normaliser.apply(text)
    if not words:
        raise TextError(f"{shown(text)} has no words that could be judged.")
    found = jiwer.process_words(words, normaliser.apply(heard))
    edits = found.substitutions + found.deletions + found.insertions
    names = ("character_edits", "characters") if normaliser is CHINESE else ("edits", "words")
    figures = dict(zip(names, (float(edits), float(len(words.split()))), strict=True))
    return Verdict(judge, figures, heard.strip())
