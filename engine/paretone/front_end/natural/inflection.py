"""Forms of words that a dictionary lists: plurals and possessives, past tenses, and what ends in -ing."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable

Known = Callable[[str], bool]
FLAPPED_AFTER = frozenset("AIOWYiuæɑəɛɪɹʊʌ")
"""After these phonemes an American t becomes a flap before a vowel."""
_DOUBLED = re.compile(r"(?:([bcdgklmnprstvxz])\1|ck)ing$")


class Form(ABC):
    """An ending."""

    stresses = False
    """Whether a stem that has no stress gets some."""

    @abstractmethod
    def stem(self, word: str, known: Known) -> str | None:
        """The word that ``word`` is a form of, of those that are ``known``."""

    @abstractmethod
    def end(self, phonemes: str) -> str:
        """The phonemes of the form, from those of the stem."""


class _S(Form):
    def stem(self, word: str, known: Known) -> str | None:
        if len(word) < 3 or not word.endswith("s"):
            return None
        if not word.endswith("ss") and known(word[:-1]):
            return word[:-1]
        long = len(word) > 4
        if (word.endswith("'s") or (long and word.endswith("es") and not word.endswith("ies"))) and known(word[:-2]):
            return word[:-2]
        return f"{word[:-3]}y" if long and word.endswith("ies") and known(f"{word[:-3]}y") else None

    def end(self, phonemes: str) -> str:
        last = phonemes[-1:]
        if last in tuple("ptkfθ"):
            return f"{phonemes}s"
        return f"{phonemes}ᵻz" if last in tuple("szʃʒʧʤ") else f"{phonemes}z"


class _Ed(Form):
    def stem(self, word: str, known: Known) -> str | None:
        if len(word) < 4 or not word.endswith("d"):
            return None
        if not word.endswith("dd") and known(word[:-1]):
            return word[:-1]
        if len(word) > 4 and word.endswith("ed") and not word.endswith("eed") and known(word[:-2]):
            return word[:-2]
        return None

    def end(self, phonemes: str) -> str:
        last = phonemes[-1:]
        if last in tuple("pkfθʃsʧ"):
            return f"{phonemes}t"
        if last == "d":
            return f"{phonemes}ᵻd"
        return f"{_flapped(phonemes)}ᵻd" if last == "t" else f"{phonemes}d"


class _Ing(Form):
    stresses = True

    def stem(self, word: str, known: Known) -> str | None:
        if len(word) < 5 or not word.endswith("ing"):
            return None
        if len(word) > 5 and known(word[:-3]):
            return word[:-3]
        if known(f"{word[:-3]}e"):
            return f"{word[:-3]}e"
        return word[:-4] if len(word) > 5 and _DOUBLED.search(word) and known(word[:-4]) else None

    def end(self, phonemes: str) -> str:
        return f"{_flapped(phonemes)}ɪŋ"


def _flapped(phonemes: str) -> str:
    flaps = phonemes.endswith("t") and phonemes[-2:-1] in FLAPPED_AFTER
    return f"{phonemes[:-1]}T" if flaps else phonemes


FORMS: tuple[Form, ...] = (_S(), _Ed(), _Ing())
