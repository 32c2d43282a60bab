"""Pronunciations that a user teaches: words with a respelling ("PAIR-uh-tone") or IPA ("/ˈpɛɹətoʊn/").

They are kept in a file of the user's data folder. Settings of the bundled models carry those in force as one line of
text (:data:`paretone.sampling.options.PRONUNCIATIONS`), so that a profile says the same words elsewhere. Torch-free.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paretone import files
from paretone.errors import TextError, placed
from paretone.fields import typed
from paretone.front_end.phones import CONSONANTS, STRESSES, VOWELS
from paretone.front_end.semiotic import one_of
from paretone.front_end.written_forms import table
from paretone.paths import data_folder
from paretone.reading import first_line, parsed_json, read_bytes, shown, until_changed

SCHEMA = 1
LARGEST = 1 << 20
"""Maximum size of the file in bytes."""
_WORD = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*")

_IPA = table("ipa") | {one: one for one in (*VOWELS, *CONSONANTS, *STRESSES, " ")}
_RESPELLED = table("respelling") | {one: one for one in "bdfhklmnpstvwz"}
_LONG = table("long")


@dataclass(frozen=True)
class HowToRead:
    """What settings decide about reading a text."""

    speed: float = 1.0
    quick_start: bool = False
    """Shortens the first piece, for an earlier start."""
    by_sentence: bool = False
    """Limits pieces to one sentence."""
    seed: int | None = None
    """The prosody of each sentence is drawn from it; without one it is the mean."""
    british: bool = False
    """Numeric dates have the day first."""
    pronunciations: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any], seed: int | None = None) -> HowToRead:
        """Those of a model's ``options``."""
        speed, quick, each = options["speed"], options.get("quick_start"), options.get("by_sentence")
        british = options.get("dates") == "british"
        return cls(float(speed), bool(quick), bool(each), seed, british, str(options.get("pronunciations", "")))


AS_USUAL = HowToRead()


@functools.lru_cache(maxsize=16)
def taught(text: str) -> Mapping[str, str]:
    """Phonemes by word, in small letters, of a line such as ``Paretone = PAIR-uh-tone; Nguyen = /wɪn/``. Raises
    :class:`TextError`."""
    found = {}
    for entry in filter(None, map(str.strip, text.split(";"))):
        word, equals, said = entry.partition("=")
        if not equals:
            raise TextError(f"The pronunciation {shown(entry)} has no “=”; write WORD = how it is said.")
        found[checked_word(word).casefold()] = phonemes(said)
    return MappingProxyType(found)


def checked_word(word: str) -> str:
    """``word`` without blanks around it. Raises :class:`TextError` unless it is one word of letters."""
    word = unicodedata.normalize("NFC", str(word).strip()).replace("’", "'")
    if not _WORD.fullmatch(word):
        raise TextError(f"{shown(word)} cannot be taught; give one word of letters, without blanks and digits.")
    return word


def phonemes(said: str) -> str:
    """Phonemes of a respelling, syllables joined by hyphens and the stressed one in capitals, or of IPA between
    slashes. Raises :class:`TextError` with what cannot be read."""
    said = unicodedata.normalize("NFC", str(said).strip())
    if not said:
        raise TextError(
            "There is no pronunciation; write a respelling such as PAIR-uh-tone, or IPA such as /ˈpɛɹətoʊn/."
        )
    if len(said) > 1 and said[0] in "/[" and said[-1] in "/]":
        signs = _signs(said[1:-1].strip(), _IPA)
        # IPA marks syllables, the models' alphabet vowels.
        vowels = "".join(VOWELS)
        moved = re.sub(rf"([ˈˌ])([^{vowels}ˈˌ]*)(?=[{vowels}])", r"\2\1", signs)
        if not re.search(f"[{vowels}]", moved):
            raise TextError(f"The pronunciation {shown(signs)} has no vowel; write all sounds of the word.")
        return moved if "ˈ" in moved else re.sub(f"([{vowels}])", r"ˈ\1", moved, count=1)
    syllables = [one for one in re.split(r"[-\s]+", said) if one]
    loud = [one.isupper() for one in syllables]
    if not any(loud) or all(loud):
        loud = [place == 0 for place in range(len(syllables))]
    parts = [_syllable(one.lower(), stressed) for one, stressed in zip(syllables, loud, strict=True)]
    return "".join(parts)


def _syllable(text: str, stressed: bool) -> str:
    magic = re.fullmatch(r"([^aeiouy]*)([aeiouy])([^aeiouy]{1,2})e", text)
    if magic and magic[3] not in ("r", "w"):
        signs = _signs(magic[1], _RESPELLED | {"y": "j"}) + _LONG[magic[2]] + _signs(magic[3], _RESPELLED)
    else:
        signs = _signs(text, _RESPELLED | ({"y": "j"} if text[0] == "y" else {"y": "I" if stressed else "i"}))
    if not stressed:
        return signs
    signs = signs.replace("əɹ", "ɜɹ").replace("ə", "ʌ") if "əɹ" in signs or "ə" in signs else signs
    return re.sub(f"([{''.join(VOWELS)}])", r"ˈ\1", signs, count=1)


def _signs(text: str, table: Mapping[str, str]) -> str:
    """The phonemes of ``text``, of which the longest signs in ``table`` are read first."""
    parts = re.findall(rf"{one_of(table)}|.", text, re.DOTALL)
    if unread := [one for one in parts if one not in table]:
        raise TextError(
            f"{shown(unread[0])} in the pronunciation {shown(text)} cannot be read; write a respelling such as "
            "PAIR-uh-tone, or IPA between slashes such as /ˈpɛɹətoʊn/."
        )
    return "".join(table[one] for one in parts)


# --- The user's file --------------------------------------------------------------------------------------------------
def lexicon_file() -> Path:
    return data_folder() / "lexicon.json"


def read_lexicon() -> dict[str, str]:
    """Words and their pronunciations as given; empty without a file. Raises :class:`TextError` for a damaged one."""
    path = lexicon_file()
    if not path.is_file():
        return {}
    hint = "mend it, or move it away to begin anew"
    try:
        content = parsed_json(read_bytes(path, LARGEST))
    except OSError as error:
        raise TextError(f"Your lexicon {path} cannot be read: {files.reason(error)}.") from error
    except ValueError as error:
        raise TextError(f"Your lexicon {path} is not JSON ({first_line(error)}); {hint}.") from error
    words = content.get("words") if isinstance(content, dict) else None
    if not isinstance(words, dict) or content.get("schema") != SCHEMA:
        raise TextError(f'Your lexicon {path} should hold "schema": {SCHEMA} and "words"; {hint}.')
    with placed(TextError, f"Your lexicon {path}"):
        for word, said in words.items():
            checked_word(word)
            phonemes(said if isinstance(said, str) else "")
    return dict(words)


_IN_PLACE = ContextVar[str | None]("lexicon", default=None)


@contextmanager
def as_taught(words: str | None) -> Iterator[None]:
    """Within, the lexicon in force is the line ``words``; ``None``: the user's own."""
    before = _IN_PLACE.set(words)
    try:
        yield
    finally:
        _IN_PLACE.reset(before)


def in_force() -> str:
    """The lexicon as one line, for a setting; empty for a damaged one, which whoever reads it by itself is told."""
    return _line_in(lexicon_file()) if (words := _IN_PLACE.get()) is None else words


@until_changed(1)  # Each setting asks for it.
def _line_in(path: Path) -> str:
    try:
        return line(read_lexicon())
    except TextError:
        return ""


def line(words: Mapping[str, str]) -> str:
    """A lexicon as one line of text, which :func:`taught` reads."""
    return "; ".join(f"{word} = {said}" for word, said in sorted(words.items()))


@typed
def teach(word: str, said: str) -> str:
    """Add ``word`` to the lexicon, or change it; return its phonemes. Raises :class:`TextError`."""
    word, sounds = checked_word(word), phonemes(said)
    _write({**_without(word), word: said.strip()})
    return sounds


@typed
def forget(word: str) -> None:
    """Remove ``word``. Raises :class:`TextError` if it is not in the lexicon."""
    left = _without(word)
    if len(left) == len(read_lexicon()):
        raise TextError(f"{shown(word)} is not in your lexicon; “paretone say --taught” lists its words.")
    _write(left)


def _without(word: str) -> dict[str, str]:
    return {one: said for one, said in read_lexicon().items() if one.casefold() != str(word).strip().casefold()}


def _write(words: Mapping[str, str]) -> None:
    path, content = lexicon_file(), {"schema": SCHEMA, "words": dict(sorted(words.items()))}
    with files.explained(TextError, f"Your lexicon {path} could not be written", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_through(path, (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode())
