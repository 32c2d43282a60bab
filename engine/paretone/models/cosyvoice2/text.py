"""Cut a text into pieces as the official code does, with numbers written out.

Rules of ``cli/frontend.py`` and ``utils/frontend_utils.py``. As upstream, ``wetext`` normalises if installed;
interjections, which some of its versions drop, are kept. Without it, upstream spells runs of digits ("$1.50" becomes
"$one.fifty" in two sentences) and cuts Chinese "1.5" in the middle. Here all but short integers are read by Paretone's
own rules, which keep amounts, years and decimals together. Texts with special tokens (``<|…|>``) stay. Torch-free.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paretone.errors import CheckpointError, TextError
from paretone.front_end.numbers import ONES, TENS
from paretone.front_end.writing import spell_numbers
from paretone.last_used import LastUsed
from paretone.models.cosyvoice2.config import INSTALL
from paretone.models.files.byte_pairs import byte_pairs

if TYPE_CHECKING:
    from tokenizers import Tokenizer


LONGEST, ENOUGH, SHORTEST = 80, 60, 20
"""Maximum length of a piece, length from which it need not grow, and length below which the last piece joins its
neighbour. In characters of Chinese, otherwise tokens."""
CHINESE_MARKS, MARKS = "。？！；：、.?!;", ".?!;:"
"""Marks after which a text may be cut."""
NUMBERS_NOTE = (
    "Numbers were written out by Paretone's own rules, because the package wetext, which the official code uses, is "
    "not installed."
)

_HAN = re.compile("[\u4e00-\u9fff]")
_SPELT_OTHERWISE = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
"""Kana and Hangul: English number words do not belong in their languages."""
_SHORT_NUMBER = re.compile(r"(?<![\w$£€¥₹°+-])(?<!\d[.,:/])(?:0|[1-9]\d{0,2})(?![\w%°-]|[.,:/]\d)")
_STRAY_BLANK = re.compile(r"(?<![\x00-\x1f!-\x7f]) | (?![\x00-\x1f!-\x7f])")
"""A blank next to a non-ASCII character."""
_IN_CHINESE = str.maketrans(
    {"\n": "", "²": "平方", "³": "立方", ".": "。", "（": "", "）": "", "【": "", "】": "", "`": ""}
)


@dataclass(frozen=True)
class ReadText:
    pieces: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_text(text: str, tokens: Callable[[str], int]) -> ReadText:
    """Normalise and cut ``text``; ``tokens`` counts the tokens of a piece. Raises :class:`TextError` if nothing is
    left."""
    if not text.strip():
        raise TextError("There is no text to speak; type a sentence.")
    written, notes = normalised(text)
    found = tuple(pieces(written, tokens))
    if not found:
        raise TextError("This text is only punctuation; type a sentence.")
    return ReadText(found, notes)


def normalised(text: str) -> tuple[str, tuple[str, ...]]:
    """``text`` in spoken form, in one piece, with notes."""
    if not text or has_special_tokens(text):
        return text, ()
    text = text.strip()
    if _HAN.search(text):
        official = _official_normaliser("zh")
        if official is not None:
            text = official(text)
        text = re.sub(r"(?<=\d)\.(?=\d)", "点", text.replace("\n", ""))
        text = _STRAY_BLANK.sub("", text).translate(_IN_CHINESE).replace(" - ", "，").replace("——", " ")
        return re.sub("[，,、]+$", "。", text), ()
    if _SPELT_OTHERWISE.search(text):
        return text, ()
    official = _official_normaliser("en")
    if official is None and any(map(str.isdigit, _SHORT_NUMBER.sub("", text))):
        return re.sub(r" +(?=[ .,?!;:])", "", spell_numbers(text)).strip(), (NUMBERS_NOTE,)
    text = text if official is None else official(text)
    # Integers below a thousand as upstream (``inflect``): one hundred and twenty-three.
    return _SHORT_NUMBER.sub(lambda match: _spelt(int(match[0])), text), ()


def pieces(text: str, tokens: Callable[[str], int]) -> Iterator[str]:
    """Cut normalised ``text`` into pieces; pieces of only punctuation are dropped."""
    if not text or has_special_tokens(text):
        yield text
        return
    chinese = _HAN.search(text) is not None
    whole = split(text, CHINESE_MARKS if chinese else MARKS, len if chinese else tokens, "。" if chinese else ".")
    yield from (piece for piece in whole if any(unicodedata.category(one)[0] not in "PS" for one in piece))


def has_special_tokens(text: str) -> bool:
    return "<|" in text and "|>" in text


def split(text: str, marks: str, length: Callable[[str], int], end: str) -> list[str]:
    """Cut ``text`` (not empty) after ``marks`` and join sentences by ``length``. A missing final mark is ``end``."""
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
    """Sentences with their final mark and a following quotation mark. Of several marks in a row the first is kept."""
    found: list[str] = []
    group = re.escape(marks)
    for body, mark, quote in re.findall(rf"([^{group}]*)([{group}])([\"”]?)", text):
        if body:
            found.append(body + mark + quote)
        elif found:
            found[-1] += quote
    return found


def _spelt(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    if hundreds:
        return f"{ONES[hundreds]} hundred" + (f" and {_spelt(rest)}" if rest else "")
    tens, ones = divmod(number, 10)
    if tens < 2:
        return ONES[number]
    return TENS[tens] + (f"-{ONES[ones]}" if ones else "")


_OFFICIAL: LastUsed[Callable[[str], str]] = LastUsed(2)


def _official_normaliser(language: str) -> Callable[[str], str] | None:
    """``wetext`` with the official options if installed; interjections are kept in all of its versions."""
    try:
        from wetext import Normalizer
    except ImportError:
        return None
    options = {"lang": language, "remove_erhua": False, "remove_interjections": False}
    return _OFFICIAL.of((Normalizer, language), lambda: Normalizer(**options).normalize)


# Text tokenizer: Qwen2's byte-pair encoding from ``CosyVoice-BlankEN``, with the tokens that CosyVoice 2 adds.
#
# The added tokens follow the vocabulary in the official order (``tokenizer/tokenizer.py``).
END_OF_PROMPT = "<|endofprompt|>"
"""Mark after an instruction that precedes a text."""
ADDED = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", END_OF_PROMPT, "[breath]", "<strong>", "</strong>", "[noise]"),
    *("[laughter]", "[cough]", "[clucking]", "[accent]", "[quick_breath]", "<laughter>", "</laughter>", "[hissing]"),
    *("[sigh]", "[vocalized-noise]", "[lipsmack]", "[mn]"),
)
"""Tokens after the vocabulary; the first three are Qwen2's own."""


class TextTokenizer:
    def __init__(self, tokenizer: Tokenizer, where: str) -> None:
        self._tokenizer = tokenizer
        self.where = where

    @classmethod
    def load(cls, folder: Path, more: Sequence[str] = ()) -> TextTokenizer:
        """Load the files in ``CosyVoice-BlankEN``; ``more`` tokens follow CosyVoice 2's. Raises
        :class:`CheckpointError` that names what is missing."""
        return cls(byte_pairs(folder, "CosyVoice", INSTALL, [*ADDED, *more]), str(folder))

    @property
    def size(self) -> int:
        """Number of ids, including added ones."""
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def joined(self, rows: int, marks: Sequence[str], speech: Sequence[str], stops: Sequence[str]) -> str:
        """Content of a ``tokenizer.json`` with the tables of text (``rows``), marks and speech in one vocabulary;
        ``speech`` can be decoded, ``marks`` and ``stops`` cannot."""
        from tokenizers import AddedToken, Tokenizer

        self.require_rows(rows, "the table of text")
        whole = Tokenizer.from_str(self._tokenizer.to_str())
        whole.add_special_tokens([f"<|unused_{number}|>" for number in range(self.size, rows)])
        whole.add_special_tokens(list(marks))
        whole.add_tokens([AddedToken(one, normalized=False) for one in speech])
        whole.add_special_tokens(list(stops))
        return whole.to_str()

    def require_rows(self, rows: int, table: str) -> None:
        """Raise :class:`CheckpointError` unless a table of ``rows`` covers every id."""
        if self.size > rows:
            raise CheckpointError(
                f"The tokenizer in {self.where} has {self.size} tokens, but {table} only {rows} rows: they do not "
                "belong together. Download the official release again."
            )
