"""Pronunciations of words in the alphabet of natural speech, by part of speech if they depend on it.

The dictionary is that of ``misaki`` in two parts, the first checked by hand; see ``NOTICE`` next to the file. Unlisted
words are tried as inflected forms of listed words, and as letters to be spelled ("GPU").
"""

from __future__ import annotations

import functools
import gzip
import re
import unicodedata
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from paretone.errors import CheckpointError
from paretone.front_end.phones import STRESSES, VOWELS
from paretone.paths import resource


def bundled(name: str) -> Path:
    return resource("lexicon", "natural", name)


def unreadable(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"The file {path} of the text front end cannot be read ({type(error).__name__}: {error}); "
        "install Paretone again."
    )


_, SECONDARY, PRIMARY = STRESSES
_HEAVY = frozenset("AIOWYʤʧ")
"""Phonemes of two sounds each."""
_VOWEL = re.compile(f"[{''.join(VOWELS)}]")


def unstressed(phonemes: str) -> str:
    return phonemes.replace(PRIMARY, "").replace(SECONDARY, "")


def weakened(phonemes: str) -> str:
    """Turn primary stress into secondary, and secondary into none, if there is primary stress."""
    if PRIMARY not in phonemes:
        return phonemes
    return phonemes.replace(SECONDARY, "").replace(PRIMARY, SECONDARY)


def emphasised(phonemes: str) -> str:
    """Turn secondary stress into primary, or stress the first vowel."""
    if PRIMARY in phonemes:
        return phonemes
    return lightly_stressed(phonemes, PRIMARY).replace(SECONDARY, PRIMARY)


def lightly_stressed(phonemes: str, mark: str = SECONDARY) -> str:
    """Put ``mark`` on the first vowel if nothing is stressed."""
    return phonemes if unstressed(phonemes) != phonemes else _VOWEL.sub(rf"{mark}\g<0>", phonemes, count=1)


def weight(phonemes: str) -> int:
    """Length of part of a word, in short sounds."""
    return len(phonemes) + sum(phoneme in _HEAVY for phoneme in phonemes)


Restress = Callable[[str], str]
FLAPPED_AFTER = frozenset("AIOWYiuæɑəɛɪɹʊʌ")
"""Phonemes after which an American t becomes a flap before a vowel."""


def with_s(phonemes: str) -> str:
    last = phonemes[-1:]
    return phonemes + ("s" if last in tuple("ptkfθ") else "ᵻz" if last in tuple("szʃʒʧʤ") else "z")


def _with_ed(phonemes: str) -> str:
    last = phonemes[-1:]
    ending = "t" if last in tuple("pkfθʃsʧ") else "ᵻd" if last in ("d", "t") else "d"
    return (_flapped(phonemes) if last == "t" else phonemes) + ending


def _with_ing(phonemes: str) -> str:
    return f"{_flapped(phonemes)}ɪŋ"


def _flapped(phonemes: str) -> str:
    flaps = phonemes.endswith("t") and phonemes[-2:-1] in FLAPPED_AFTER
    return f"{phonemes[:-1]}T" if flaps else phonemes


_FORMS: tuple[tuple[str, str, Restress], ...] = (
    ("(.+[^s])s", "", with_s),
    ("(.+)'s", "", with_s),
    ("(.{2,}[^i])es", "", with_s),
    ("(.{2,})ies", "y", with_s),
    ("(.{2,}[^d])d", "", _with_ed),
    ("(.{2,}[^e])ed", "", _with_ed),
    ("(.{3,})ing", "", _with_ing),
    ("(.{2,})ing", "e", _with_ing),
    (r"(.+([bcdgklmnprstvxz]))\2ing", "", _with_ing),
    ("(.+c)king", "", _with_ing),
)
"""Inflected forms: the stem as written, the letter that it loses, and its phonemes with the ending."""


FILE = "pronunciations.tsv.gz"
SEPARATOR = "\x1d"
"""Line between the two parts."""
LONGEST_NAME = 7
"""Maximum length of a proper name, in letters, that is never read as a common word in capitals."""
BEFORE_PAUSE, ANY_CLASS = "None", "DEFAULT"
"""Keys of the readings at the end of a phrase, and of the default reading."""
_CLASSES = (("VB", "VERB"), ("NN", "NOUN"), ("RB", "ADV"), ("JJ", "ADJ"))

Readings = Mapping[str, str]


@dataclass(frozen=True)
class Context:
    """The words after the one to pronounce."""

    vowel: bool | None = None
    """Whether the next sound is a vowel; ``None`` if a pause or nothing comes next."""
    to: bool = False
    """Whether the next word is "to"."""


def _find(listed: Mapping[str, str], word: str) -> str | None:
    """The entry of ``word``, whatever the case of its first letter."""
    found = listed.get(word)
    if found is None and len(word) > 1:
        lower = word.lower()
        if word == lower:
            return listed.get(word.capitalize())
        if word == lower.capitalize():
            return listed.get(lower)
    return found


def _readings(listed: Mapping[str, str], word: str) -> Readings:
    """Phonemes of ``word`` by part of speech, at least for :data:`ANY_CLASS`; empty phonemes for letters to be spelled.
    Empty if unlisted."""
    found = _find(listed, word)
    if found is None:
        return {}
    return dict(one.split("=") for one in found.split("\t")) if "=" in found else {ANY_CLASS: found}


class Lexicon:
    """Both parts of the dictionary, inflected forms, and letters."""

    def __init__(self, checked: Mapping[str, str], others: Mapping[str, str]) -> None:
        """Readings by word, as phonemes or ``TAG=phonemes`` separated by tabs."""
        self._checked, self._others = checked, others

    @classmethod
    def load(cls, path: Path) -> Lexicon:
        """Read the file written by :mod:`tests.tools.natural_front_end`. Raises :class:`CheckpointError`."""
        try:
            parts = gzip.decompress(path.read_bytes()).decode().split(f"\n{SEPARATOR}\n")
            checked, others = (dict(line.split("\t", 1) for line in part.split("\n")) for part in parts)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise unreadable(path, error) from error
        return cls(checked, others)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and any(_find(one, word) is not None for one in (self._checked, self._others))

    def words(self) -> list[str]:
        return sorted({*self._checked, *self._others})

    def pronounce(self, word: str, tag: str, context: Context = Context()) -> str | None:
        """Phonemes of ``word``, as written, with the part of speech ``tag``; ``None`` if it is unknown."""
        word = unicodedata.normalize("NFKC", word)
        found = function_word(word, tag, context)
        if found is not None:
            return found
        restress: Restress = str
        if word != word.lower():
            restress = emphasised if word == word.upper() else lightly_stressed
        said = self._as_written(word, tag, context, restress)
        if said is not None or word.isascii():
            return said
        plain = "".join(one for one in unicodedata.normalize("NFKD", word) if not unicodedata.combining(one))
        return None if plain == word else self._as_written(plain, tag, context, restress)

    def spelled(self, word: str) -> str | None:
        """Names of the letters of ``word``, the last one stressed; ``None`` if a letter has no name."""
        names = [_readings(self._checked, one.upper()).get(ANY_CLASS) for one in word if one.isalpha()]
        if not names or None in names:
            return None
        before, mark, last = weakened("".join(name for name in names if name)).rpartition(SECONDARY)
        return before + (PRIMARY if mark else "") + last

    def _as_written(self, word: str, tag: str, context: Context, restress: Restress) -> str | None:
        # An abbreviation like "U.S." or "a.m." is spelled.
        if "." in word.strip(".") and word.replace(".", "").isalpha() and max(map(len, word.split("."))) <= 2:
            return self.spelled(word)
        if self._only_capitals_differ(word, tag, context):
            word = word.lower()
        if self._known(word):
            return self._look_up(word, tag, context, restress)
        for ending, other in (("s'", "'s"), ("'", "")):
            stem = word.removesuffix(ending) + other
            if word.endswith(ending) and self._known(stem):
                return self._look_up(stem, tag, context, restress)
        return self._form(word, tag, context, restress)

    def _form(self, word: str, tag: str, context: Context, restress: Restress) -> str | None:
        for written, lost, end in _FORMS:
            match = re.fullmatch(written, word)
            if match and self._known(match[1] + lost):
                # An unstressed stem before "ing" gets secondary stress.
                light = lightly_stressed if end is _with_ing and restress is str else restress
                return end(self._look_up(match[1] + lost, tag, context, light))
        return None

    def _only_capitals_differ(self, word: str, tag: str, context: Context) -> bool:
        """Whether ``word`` is a common word in capitals: at the start of a sentence, in a title, or shouted."""
        lower = word.lower()
        if len(word) < 2 or word == lower or word in self or not word.replace("'", "").isalpha():
            return False
        if tag == "NNP" and len(word) <= LONGEST_NAME:
            return False
        if word != word.upper() and word[1:] != lower[1:]:
            return False
        return lower in self or self._form(lower, tag, context, str) is not None

    def _known(self, word: str) -> bool:
        if word in self:
            return True
        if not (word.isascii() and word.isalpha()):
            return False
        return len(word) == 1 or word[1:].isupper()

    def _look_up(self, word: str, tag: str, context: Context, restress: Restress) -> str:
        name = False
        if word == word.upper() and _find(self._checked, word) is None:
            word, name = word.lower(), tag == "NNP"
        readings = _readings(self._checked, word) or ({} if name else _readings(self._others, word))
        said = _chosen(readings, tag, context)
        if not said or (name and PRIMARY not in said):
            letters = self.spelled(word)
            if letters is not None:
                return letters
        return restress(said)


def _chosen(readings: Readings, tag: str, context: Context) -> str:
    if context.vowel is None and BEFORE_PAUSE in readings:
        return readings[BEFORE_PAUSE]
    whole = next((whole for start, whole in _CLASSES if tag.startswith(start)), tag)
    return readings[tag] if tag in readings else readings.get(whole, readings.get(ANY_CLASS, ""))


def function_word(word: str, tag: str, context: Context) -> str | None:
    """Pronounce small words by the next sound; ``None`` for other words."""
    small, shouted, vowel, ends = word.lower(), word.isupper() and len(word) > 1, context.vowel, context.vowel is None
    match small:
        case "a":  # An article needs a word after it; at the end of a phrase it is the letter.
            return "ɐ" if tag == "DT" and not ends else "ˈA"
        case "an" if not (shouted and tag.startswith("NN")):
            return "ɐn"
        case "am" if not tag.startswith("NN"):
            return "ɐm" if word == "am" and not ends else "æm"
        case "the" if not shouted or tag == "DT":
            return "ði" if vowel else "ðə"
        case "to" if not ends and (not shouted or tag in ("TO", "IN")):
            return "tʊ" if vowel else "tə"
        case "in" if not shouted or tag != "NNP":
            return "ˈɪn" if ends or tag != "IN" else "ɪn"
        case "i" if word == "I" and tag == "PRP":
            return "ˌI"
        case "by" if tag.startswith("RB"):
            return "bˈI"
        case "used":
            return "jˈust" if context.to and tag in ("VBD", "JJ") else "jˈuzd"
    return None


@functools.lru_cache(maxsize=1)
def default_lexicon() -> Lexicon:
    return Lexicon.load(bundled(FILE))
