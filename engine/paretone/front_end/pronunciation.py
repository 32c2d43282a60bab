"""Pronunciation of a word: from the lexicon, from parts of it in the lexicon, or from its spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from paretone.front_end.letter_to_sound import LetterToSound
from paretone.front_end.lexicon import Lexicon, Phones
from paretone.front_end.phones import VOWELS

LEXICON = "lexicon"
RULE = "rule"
SPELLING = "spelling"

SIBILANTS = frozenset(("s", "z", "sh", "zh", "ch", "jh"))
VOICELESS = frozenset(("p", "t", "k", "f", "th", "s", "sh", "ch", "hh"))

Sound = Callable[[Phones], Phones]


@dataclass(frozen=True)
class Pronunciation:
    """The phones of one word and where they come from."""

    phones: Phones
    source: str
    """``lexicon``, ``rule`` (put together from words of the lexicon) or ``spelling`` (letter to sound)."""


def plural_ending(stem: Phones) -> Phones:
    """The sound of -s, -es and -'s: "buses", "cats", "dogs"."""
    if stem[-1] in SIBILANTS:
        return (*stem, "ih", "z")
    return (*stem, "s" if stem[-1] in VOICELESS else "z")


def past_ending(stem: Phones) -> Phones:
    """The sound of -ed: "waited", "walked", "played"."""
    if stem[-1] in ("t", "d"):
        return (*stem, "ih", "d")
    return (*stem, "t" if stem[-1] in VOICELESS else "d")


def _ending(*phones: str) -> Sound:
    return lambda stem: (*stem, *phones)


@dataclass(frozen=True)
class Suffix:
    """A suffix, what its sound does to the stem's, and what the stem may end in once it is gone."""

    letters: str
    sound: Sound
    restored: tuple[str, ...] = ("",)
    """Letters put back on the stem, in the order tried. ``-`` takes one of a doubled consonant away."""


SUFFIXES = (
    Suffix("'s", plural_ending),
    Suffix("s'", plural_ending),
    Suffix("'ll", _ending("ax", "l")),
    Suffix("'ve", _ending("ax", "v")),
    Suffix("'d", _ending("d")),
    Suffix("'re", _ending("er")),
    Suffix("n't", _ending("ax", "n", "t")),
    Suffix("ies", plural_ending, ("y", "ie")),
    Suffix("es", plural_ending, ("e", "")),
    Suffix("s", plural_ending),
    Suffix("ied", past_ending, ("y",)),
    Suffix("ed", past_ending, ("-", "e", "")),
    Suffix("ing", _ending("ih", "ng"), ("-", "e", "")),
    Suffix("iness", _ending("n", "ax", "s"), ("y",)),
    Suffix("ness", _ending("n", "ax", "s")),
    Suffix("less", _ending("l", "ax", "s")),
    Suffix("est", _ending("ax", "s", "t"), ("-", "e", "")),
    Suffix("ish", _ending("ih", "sh"), ("-", "e", "")),
)

SHORTEST_STEM = 3
SHORTEST_PART = 5
"""Letters of either part of a compound: shorter words turn up inside others by chance."""

BRITISH = (("isation", "ization"), ("ise", "ize"), ("ising", "izing"), ("ised", "ized"), ("our", "or"), ("ours", "ors"))
BRITISH_ENDINGS = (*BRITISH, ("oured", "ored"), ("ouring", "oring"), ("yse", "yze"), ("tre", "ter"), ("ogue", "og"))


class Pronouncer:
    """Words, lower-case with apostrophes, to phones."""

    def __init__(self, lexicon: Lexicon, letter_to_sound: Callable[[], LetterToSound]) -> None:
        """``letter_to_sound`` is called once, when the first word needs it."""
        self._lexicon = lexicon
        self._letter_to_sound = letter_to_sound
        self._known: dict[str, Pronunciation] = {}

    def pronounce(self, word: str) -> Pronunciation:
        """The phones of ``word``; none for a word without letters."""
        if word not in self._known:
            self._known[word] = self._find(word)
        return self._known[word]

    def _find(self, word: str) -> Pronunciation:
        listed = self._lexicon.phones(word) or self._lexicon.phones(word.strip("'"))
        if listed:
            return Pronunciation(listed, LEXICON)
        built = self.build(word) or self.build(word.strip("'"))
        if built:
            return Pronunciation(built, RULE)
        for suffix in SUFFIXES[:2]:
            if word.endswith(suffix.letters) and len(word) > 2:
                return Pronunciation(suffix.sound(self.pronounce(word[:-2]).phones), SPELLING)
        return Pronunciation(self._spell(re.sub("[^a-z]", "", word)), SPELLING)

    def build(self, word: str) -> Phones | None:
        """The phones of a word put together from the lexicon's: an ending, a prefix, a compound or a British
        spelling."""
        for british, american in BRITISH_ENDINGS:
            if word.endswith(british):
                listed = self._lexicon.phones(word.removesuffix(british) + american)
                if listed:
                    return listed
        for suffix in SUFFIXES:
            if word.endswith(suffix.letters):
                for stem in _stems(word.removesuffix(suffix.letters), suffix):
                    listed = self._lexicon.phones(stem) if len(stem) >= SHORTEST_STEM else None
                    if listed and any(phone in VOWELS for phone in listed):
                        return suffix.sound(listed)
        return self._compound(word)

    def _compound(self, word: str) -> Phones | None:
        """Two words of the lexicon in one; the most even cut wins."""
        cuts = sorted(range(SHORTEST_PART, len(word) - SHORTEST_PART + 1), key=lambda cut: abs(len(word) - 2 * cut))
        for cut in cuts:
            first, second = self._lexicon.phones(word[:cut]), self._lexicon.phones(word[cut:])
            if first and second:
                return first + second
        return None

    def _spell(self, letters: str) -> Phones:
        """Letter to sound; a run of consonants that cannot be said is named letter by letter."""
        if letters and not re.search("[aeiouy]", letters):
            return tuple(phone for letter in letters for phone in self._lexicon.phones(f"{letter}.") or ())
        return self._letter_to_sound().pronounce(letters) if letters else ()


def _stems(rest: str, suffix: Suffix) -> Iterator[str]:
    for restored in suffix.restored:
        if restored != "-":
            yield rest + restored
        elif len(rest) > SHORTEST_STEM and rest[-1] == rest[-2] and rest[-1] not in "aeiousl":
            yield rest[:-1]
