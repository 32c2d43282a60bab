"""A text in the pieces that CosyVoice 2 reads one by one: numbers written out, cut where the official code cuts.

Rules of ``cli/frontend.py`` and ``utils/frontend_utils.py``. As upstream, ``wetext`` normalises if it is installed;
interjections, which some of its versions drop, stay. Without it, upstream spells runs of digits ("$1.50" becomes
"$one.fifty" in two sentences) and cuts Chinese "1.5" in the middle. The default, *improved*, reads all but short whole
numbers by Paretone's own rules and keeps decimals together; ``improved=False`` gives the official result. Texts with
special tokens (``<|…|>``) are left as they are. Torch-free.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from paretone.errors import TextError
from paretone.front_end.numbers import ONES, TENS, spell_numbers

LONGEST, ENOUGH, SHORTEST = 80, 60, 20
"""A piece may grow to the first; from the second on it need not; a last one below the third joins its neighbour.
Characters of Chinese, tokens of anything else."""
CHINESE_MARKS, MARKS = "。？！；：、.?!;", ".?!;:"
"""After these a text may be cut."""
NUMBERS_NOTE = (
    "Numbers were written out by Paretone's own rules, because the package wetext, which the official code uses, is "
    "not installed."
)

_HAN = re.compile("[\u4e00-\u9fff]")
_SPELT_OTHERWISE = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
"""Kana and Hangul: in their languages, English number words would be out of place."""
_SCALES = (
    *("", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion", "septillion"),
    *("octillion", "nonillion", "decillion"),
)
_SHORT_NUMBER = re.compile(r"(?<![\w$£€¥₹°+-])(?<!\d[.,:/])(?:0|[1-9]\d{0,2})(?![\w%°-]|[.,:/]\d)")
_STRAY_BLANK = re.compile(r"(?<![\x00-\x1f!-\x7f]) | (?![\x00-\x1f!-\x7f])")
"""A blank with something other than ASCII on either side."""
_IN_CHINESE = str.maketrans(
    {"\n": "", "²": "平方", "³": "立方", ".": "。", "（": "", "）": "", "【": "", "】": "", "`": ""}
)


@dataclass(frozen=True)
class ReadText:
    """A text, ready for the tokenizer."""

    pieces: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Things the user should know, as sentences."""


def read_text(text: str, tokens: Callable[[str], int], improved: bool = True) -> ReadText:
    """Normalise and cut ``text``; ``tokens`` counts those of a piece, ``improved`` is explained at :func:`normalised`.
    Raises :class:`TextError` when nothing is left."""
    if not text.strip():
        raise TextError("There is no text to speak; type a sentence.")
    written, notes = normalised(text, improved)
    found = tuple(pieces(written, tokens))
    if not found:
        raise TextError("This text is only punctuation; type a sentence.")
    return ReadText(found, notes)


def normalised(text: str, improved: bool = True) -> tuple[str, tuple[str, ...]]:
    """``text`` as it is spoken, in one piece, and notes about it.

    ``improved`` decides how numbers are read: by rules that keep amounts, years and decimals whole, or exactly as the
    official code does.
    """
    if not text or has_special_tokens(text):
        return text, ()
    text = text.strip()
    if _HAN.search(text):
        return _chinese(text, improved), ()
    return _english(text) if improved else (_officially_spelt(text), ())


def pieces(text: str, tokens: Callable[[str], int]) -> Iterator[str]:
    """``text``, already normalised, in the pieces that are spoken one by one; pieces of punctuation only are left
    out."""
    if not text or has_special_tokens(text):
        yield text
        return
    chinese = _HAN.search(text) is not None
    whole = split(text, CHINESE_MARKS if chinese else MARKS, len if chinese else tokens, "。" if chinese else ".")
    yield from (piece for piece in whole if not _only_punctuation(piece))


def has_special_tokens(text: str) -> bool:
    """Whether ``text`` speaks to the model directly."""
    return "<|" in text and "|>" in text


def split(text: str, marks: str, length: Callable[[str], int], end: str) -> list[str]:
    """Cut ``text`` (not empty) after ``marks`` and gather sentences to pieces by their ``length``. A text that does not
    end in a mark is given ``end``."""
    found: list[str] = []
    gathered = ""
    for sentence in _sentences(text if text[-1] in marks else text + end, marks):
        if length(gathered + sentence) > LONGEST and length(gathered) > ENOUGH:
            found.append(gathered)
            gathered = ""
        gathered += sentence
    if found and length(gathered) < SHORTEST:
        found[-1] += gathered
    elif gathered:
        found.append(gathered)
    return found


def _sentences(text: str, marks: str) -> list[str]:
    """Sentences with the mark that ends them and a quotation mark after it. Of several marks in a row the first
    remains."""
    found: list[str] = []
    group = re.escape(marks)
    for body, mark, quote in re.findall(rf"([^{group}]*)([{group}])([\"”]?)", text):
        if body:
            found.append(body + mark + quote)
        elif found:
            found[-1] += quote
    return found


def _chinese(text: str, improved: bool) -> str:
    official = _official_normaliser("zh")
    if official is not None:
        text = official(text)
    text = text.replace("\n", "")
    if improved:
        text = re.sub(r"(?<=\d)\.(?=\d)", "点", text)
    text = _STRAY_BLANK.sub("", text).translate(_IN_CHINESE).replace(" - ", "，").replace("——", " ")
    return re.sub("[，,、]+$", "。", text)


def _english(text: str) -> tuple[str, tuple[str, ...]]:
    if _SPELT_OTHERWISE.search(text):
        return text, ()
    official = _official_normaliser("en")
    if official is not None:
        return _short_numbers(official(text)), ()
    if any(map(str.isdigit, _SHORT_NUMBER.sub("", text))):
        return re.sub(r" +(?=[ .,?!;:])", "", spell_numbers(text)).strip(), (NUMBERS_NOTE,)
    return _short_numbers(text), ()


def _officially_spelt(text: str) -> str:
    official = _official_normaliser("en")
    text = text if official is None else official(text)
    runs = ((is_digit, "".join(run)) for is_digit, run in itertools.groupby(text, str.isdigit))
    return "".join(_run_of_digits(run) if is_digit else run for is_digit, run in runs)


def _run_of_digits(run: str) -> str:
    """Digits as ``inflect`` reads them, without raised ones. Runs beyond its names, where upstream fails, stay."""
    number = "".join(str(unicodedata.decimal(digit)) for digit in run if digit.isdecimal()).lstrip("0") or "0"
    if len(number) > 3 * len(_SCALES):
        return run
    groups = [int(number[max(0, last - 3) : last]) for last in range(len(number), 0, -3)]
    words = [f"{_spelt(group)} {scale}".rstrip() for group, scale in zip(groups, _SCALES, strict=False) if group]
    if not words:
        return ONES[0]
    joint = " and " if 0 < groups[0] < 100 else ", "
    return joint.join(filter(None, [", ".join(reversed(words[1:])), words[0]]))


def _short_numbers(text: str) -> str:
    """Whole numbers below a thousand as upstream (``inflect``) writes them: one hundred and twenty-three."""
    return _SHORT_NUMBER.sub(lambda match: _spelt(int(match[0])), text)


def _spelt(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    if hundreds:
        return f"{ONES[hundreds]} hundred" + (f" and {_spelt(rest)}" if rest else "")
    tens, ones = divmod(number, 10)
    if tens < 2:
        return ONES[number]
    return TENS[tens] + (f"-{ONES[ones]}" if ones else "")


def _only_punctuation(text: str) -> bool:
    return all(unicodedata.category(character)[0] in "PS" for character in text)


@functools.lru_cache(maxsize=2)
def _official_normaliser(language: str) -> Callable[[str], str] | None:
    """``wetext`` with the official options if it is installed; interjections stay in all of its versions."""
    try:
        from wetext import Normalizer
    except ImportError:
        return None
    return Normalizer(lang=language, remove_erhua=False, remove_interjections=False).normalize
