"""Preparation of OmniVoice's text before tokenisation. Torch-free.

Source: ``_combine_text`` and ``_tokenize_with_nonverbal_tags`` of k2-fsa/OmniVoice and ``omnivoice/utils/text.py``.
"""

from __future__ import annotations

import bisect
import difflib
import functools
import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretone.errors import SettingError
from paretone.front_end import speakable
from paretone.models.files.checkpoints import read_tokenizer
from paretone.models.omnivoice.config import INSTALL
from paretone.paths import resource

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Tables:
    """See ``resources/omnivoice/tables.json``."""

    languages: dict[str, str]
    """Ids of languages (ISO 639) by lower-case English name."""
    duration_weights: dict[str, float]
    """Duration of each kind of character, relative to a Latin letter."""
    duration_ranges: tuple[tuple[int, str], ...]
    """Last code point of each range of characters, and their kind."""
    split_punctuation: frozenset[str]
    """Characters after which a text may be cut."""
    closing_marks: frozenset[str]
    end_punctuation: frozenset[str]
    abbreviations: frozenset[str]
    """Abbreviations whose full stop does not end a sentence."""
    nonverbal: str
    """Regular expression of tags for sounds, such as ``[laughter]``."""
    instruct_english: frozenset[str]
    instruct_chinese: frozenset[str]
    instruct_translations: dict[str, str]
    """Chinese words by their English equivalents."""
    instruct_exclusive: tuple[frozenset[str], ...]
    """Groups of mutually exclusive words."""


@functools.cache
def tables() -> Tables:
    read: dict[str, Any] = json.loads(resource("omnivoice", "tables.json").read_text(encoding="utf-8"))
    del read["source"]
    ranges, exclusive = map(tuple, read.pop("duration_ranges")), map(frozenset, read.pop("instruct_exclusive"))
    rest: dict[str, Any] = {name: frozenset(one) if isinstance(one, list) else one for name, one in read.items()}
    return Tables(**rest, duration_ranges=tuple(ranges), instruct_exclusive=tuple(exclusive))


# Duration of a text, from the kinds of its characters and the pace of the reference.
#
# Source: ``RuleDurationEstimator`` of k2-fsa/OmniVoice (``omnivoice/utils/duration.py``).
USUAL_TEXT, USUAL_FRAMES = "Nice to meet you.", 25
"""Text and frames that define the pace without a reference."""
SHORT_FRAMES = 50
"""Estimates below this are increased, because short texts are spoken more slowly."""

_KINDS = {"M": "mark", "P": "punctuation", "S": "punctuation", "Z": "space", "N": "digit"}
"""Kinds of characters determined by their Unicode category, whatever their script."""


def weight(text: str) -> float:
    """Length of ``text``, in Latin letters."""
    return sum(map(_character, text))


def expected_frames(text: str, reference: str = "", reference_frames: int = 0, speed: float = 1.0) -> int:
    """Frames of ``text``, at least 1, at the pace of ``reference`` in ``reference_frames``, or the default."""
    if not reference or not reference_frames or not weight(reference):
        reference, reference_frames = USUAL_TEXT, USUAL_FRAMES
    estimate = weight(text) / (weight(reference) / reference_frames)
    if 0 < estimate < SHORT_FRAMES:
        estimate = SHORT_FRAMES * (estimate / SHORT_FRAMES) ** (1 / 3)
    if speed != 1.0:
        estimate /= speed
    return max(1, int(estimate))


@functools.lru_cache(maxsize=4096)
def _character(one: str) -> float:
    return tables().duration_weights[_kind(one)]


def _kind(one: str) -> str:
    if one.isascii() and one.isalpha():
        return "latin"
    if one == " ":
        return "space"
    by_category = _KINDS.get(unicodedata.category(one)[0])
    if by_category is not None:
        return by_category
    ranges = tables().duration_ranges
    place = bisect.bisect_left(ranges, (ord(one), ""))
    return ranges[place][1] if place < len(ranges) else "cjk" if ord(one) > 0x20000 else "default"


# The language and the style tags before a text.
#
# Source: ``_resolve_language`` and ``_resolve_instruct`` of k2-fsa/OmniVoice; their warnings and errors become
# sentences here, in the same cases.
_COMMAS = re.compile(r"\s*[,，]\s*")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def language(name: str) -> tuple[str | None, tuple[str, ...]]:
    """Id of a language given by id or English name, with remarks for the user; ``None``: no language. As upstream, an
    unknown language is ignored, with a note."""
    known, name = tables().languages, name.strip()
    lowered = name.lower()
    if not name or lowered == "none":
        return None, ()
    if name in known.values():
        return name, ()
    if lowered in known:
        return known[lowered], ()
    close = difflib.get_close_matches(lowered, [*known, *known.values()], n=3, cutoff=0.7)
    like = f" Did you mean {' or '.join(close)}?" if close else ""
    return None, (
        f"OmniVoice does not know the language {name!r}, so no language was set.{like} It takes an id such as en, zh "
        "or ja, or an English name.",
    )


def is_chinese(text: str) -> bool:
    return bool(_CHINESE.search(text))


def instruct(said: str, *, chinese: bool) -> str | None:
    """Normalise a description of the voice, such as ``female, low pitch``, to the training's form; ``None`` if empty.

    For a ``chinese`` text the words become Chinese, unless there is an English accent. Raises :class:`SettingError` for
    unknown and mutually exclusive words.
    """
    words = [word.lower() for word in _COMMAS.split(said.strip()) if word.strip()]
    if not words:
        return None
    known = tables()
    for word in words:
        if word not in known.instruct_english and word not in known.instruct_chinese:
            close = difflib.get_close_matches(word, [*known.instruct_english, *known.instruct_chinese], n=1, cutoff=0.6)
            like = f"did you mean {close[0]!r}?" if close else f"it knows {', '.join(sorted(known.instruct_english))}."
            raise SettingError(f"OmniVoice does not know the description {word!r} of a voice; {like}")
    dialect = next((word for word in words if word.endswith("话")), None)
    accent = next((word for word in words if word.endswith(" accent")), None)
    if dialect and accent:
        raise SettingError(
            f"{dialect} is a dialect of Chinese, but {accent} is of English: no voice has both; leave one out."
        )
    chinese = dialect is not None or (chinese and accent is None)
    translations = known.instruct_translations
    if not chinese:
        translations = {theirs: ours for ours, theirs in translations.items()}
    words = [translations.get(word, word) for word in words]
    for group in known.instruct_exclusive:
        found = [word for word in words if word in group]
        if len(found) > 1:
            raise SettingError(f"A voice cannot be both {found[0]!r} and {found[1]!r}; leave one out.")
    return ("，" if any(map(is_chinese, words)) else ", ").join(words)


SHORTEST_CHUNK = 3
"""Characters below which a piece of text joins its neighbour."""
_NEXT_TO_CHINESE = re.compile(r"(?<=[\u4e00-\u9fff])\s+|\s+(?=[\u4e00-\u9fff])")


def combined(text: str, reference: str = "") -> str:
    """``text`` after the ``reference`` transcript, on one line, with ASCII parentheses and single blanks."""
    whole = f"{reference.strip()} {text.strip()}" if reference else text.strip()
    whole = re.sub(r"[\r\n]+", "", whole).replace("（", "(").replace("）", ")")
    return _NEXT_TO_CHINESE.sub("", re.sub(r"[ \t]+", " ", whole))


def ended(text: str) -> str:
    """Add a full stop to ``text`` without a final mark."""
    text = text.strip()
    if not text or text[-1] in tables().end_punctuation:
        return text
    return f"{text}{'。' if is_chinese(text) else '.'}"


def segments(text: str) -> list[str]:
    """Cut ``text`` before and after each tag for a sound; they are tokenised separately, for constant tokens."""
    return [one for one in re.split(f"({tables().nonverbal.replace('(', '(?:')})", text) if one]


def chunks(text: str, longest: int, shortest: int = SHORTEST_CHUNK) -> list[str]:
    """Cut ``text`` after punctuation into pieces of at most ``longest`` characters where possible. One shorter than
    ``shortest`` joins the previous piece, the first one the next."""
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
    """Cut ``text`` into sentences, including Chinese and Japanese ones."""
    parts = (re.split(r"(?<=[。！？])(?![。！？”’」』）])", one) for one in speakable.sentences(text))
    return [part.strip() for found in parts for part in found if part.strip()]


def is_spoken(text: str) -> bool:
    return any(map(str.isalnum, text))


def _clauses(text: str) -> list[str]:
    """Cut ``text`` after each punctuation mark and the marks that follow it, but not after abbreviations."""
    known = tables()
    marks = known.split_punctuation | known.closing_marks
    found: list[str] = []
    current = ""
    for one in text:
        if not current and found and one in marks:
            found[-1] += one
            continue
        current += one
        abbreviated = one == "." and current.split()[-1:] and current.split()[-1] in known.abbreviations
        if one in known.split_punctuation and not abbreviated:
            found.append(current)
            current = ""
    return [*found, current] if current else found


# OmniVoice's tokenizer: Qwen3's, with marks for language, description and text, and tags for sounds.
DENOISE = "<|denoise|>"
LANGUAGE = "<|lang_start|>", "<|lang_end|>"
INSTRUCT = "<|instruct_start|>", "<|instruct_end|>"
TEXT = "<|text_start|>", "<|text_end|>"
NOT_TOLD = "None"


@dataclass(frozen=True)
class OmniVoiceTokenizer:
    tokenizer: Tokenizer

    @classmethod
    def read(cls, folder: Path) -> OmniVoiceTokenizer:
        """Read ``tokenizer.json``. Raises :class:`CheckpointError` if package, file or tokens are missing."""
        return cls(read_tokenizer(folder, "OmniVoice", INSTALL, (DENOISE, *LANGUAGE, *INSTRUCT, *TEXT)))

    @property
    def vocabulary(self) -> int:
        return self.tokenizer.get_vocab_size(with_added_tokens=True)

    def prompt(self, text: str, language: str | None, instruct: str | None, *, denoise: bool) -> list[int]:
        """Ids before a canvas for ``text``, which starts with the reference's transcript."""
        style = (
            f"{DENOISE if denoise else ''}{LANGUAGE[0]}{language or NOT_TOLD}{LANGUAGE[1]}"
            f"{INSTRUCT[0]}{instruct or NOT_TOLD}{INSTRUCT[1]}"
        )
        ids = self._ids(style)
        for segment in segments(f"{TEXT[0]}{text}{TEXT[1]}"):
            ids.extend(self._ids(segment))
        return ids

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids
