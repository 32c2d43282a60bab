"""Words and numbers that OmniVoice's text side goes by, as its authors published them (k2-fsa/OmniVoice, Apache-2.0).
Torch-free."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

from paretone.paths import resource


@dataclass(frozen=True)
class Tables:
    """See ``resources/omnivoice/tables.json``."""

    languages: dict[str, str]
    """Ids of languages (ISO 639) by their English names, in small letters."""
    duration_weights: dict[str, float]
    """Duration of a character of each kind, a Latin letter being 1."""
    duration_ranges: tuple[tuple[int, str], ...]
    """The last code point of each range of characters, and their kind."""
    split_punctuation: frozenset[str]
    """Characters after which a text may be cut."""
    closing_marks: frozenset[str]
    end_punctuation: frozenset[str]
    abbreviations: frozenset[str]
    """Abbreviations: full stops that do not end a sentence."""
    nonverbal: str
    """A regular expression of the tags that stand for sounds, such as ``[laughter]``."""
    instruct_english: frozenset[str]
    instruct_chinese: frozenset[str]
    instruct_translations: dict[str, str]
    """Chinese words by the English ones that they are the same as."""
    instruct_exclusive: tuple[frozenset[str], ...]
    """Words of which no more than one may be said."""


@functools.cache
def tables() -> Tables:
    """All of them."""
    read = json.loads(resource("omnivoice", "tables.json").read_text(encoding="utf-8"))
    return Tables(
        read["languages"],
        read["duration_weights"],
        tuple((last, kind) for last, kind in read["duration_ranges"]),
        frozenset(read["split_punctuation"]),
        frozenset(read["closing_marks"]),
        frozenset(read["end_punctuation"]),
        frozenset(read["abbreviations"]),
        read["nonverbal"],
        frozenset(read["instruct_english"]),
        frozenset(read["instruct_chinese"]),
        read["instruct_translations"],
        tuple(map(frozenset, read["instruct_exclusive"])),
    )
