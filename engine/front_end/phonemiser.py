"""English text to the phones that a model of this front end was trained on."""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from engine.errors import TextError
from engine.front_end.letter_to_sound import LetterToSound, default_letter_to_sound
from engine.front_end.lexicon import Lexicon, Phones, default_lexicon
from engine.front_end.normalisation import normalise
from engine.front_end.phones import PAUSE, VOWELS
from engine.front_end.pronunciation import LEXICON, Pronouncer, Pronunciation

MOST_CHARACTERS = 50_000
MOST_NAMED = 8
"""Maximum number of characters or words named in a sentence for the user."""

WEAK_FORMS: dict[str, Phones] = {
    "a": ("ax",),
    "an": ("ae", "n"),
    "and": ("ae", "n", "d"),
    "for": ("f", "ao", "r"),
    "of": ("ax", "v"),
    "the": ("dh", "ax"),
    "to": ("t", "ax"),
}
"""Function words as flite says them inside a sentence, which is how the bundled models heard them."""
THE_BEFORE_VOWEL: Phones = ("dh", "iy")


@dataclass(frozen=True)
class SpokenWord:
    """One word and where its phones lie in the phones of the text."""

    text: str
    first: int
    last: int
    """One past its last phone."""
    source: str
    """``lexicon``, ``rule`` or ``spelling``, as in :class:`engine.front_end.pronunciation.Pronunciation`."""


@dataclass(frozen=True)
class PhoneText:
    """A text as it will be spoken. ``phones`` neither begin nor end with a pause, and no two pauses meet."""

    text: str
    spoken: str
    """The text with everything written out in words."""
    phones: Phones
    words: tuple[SpokenWord, ...]
    dropped: tuple[str, ...]
    """Characters that cannot be spoken, each once."""

    @property
    def guessed(self) -> tuple[str, ...]:
        """Words that the lexicon lacks, each once: their pronunciation is a good guess."""
        return tuple(dict.fromkeys(word.text for word in self.words if word.source != LEXICON))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user that name what was dropped and what was guessed; empty when nothing was."""
        found = []
        if self.dropped:
            found.append(f"Left out, because the model has no sound for it: {name_characters(self.dropped)}.")
        if self.guessed:
            words, rest = ", ".join(self.guessed[:MOST_NAMED]), len(self.guessed) - MOST_NAMED
            found.append(f"Read by rule, not in the lexicon: {words}{f' and {rest} more' if rest > 0 else ''}.")
        return tuple(found)


class Phonemiser:
    """Text to phones. Loads the lexicon at the first use and the letter-to-sound model at the first unknown word."""

    def __init__(self, lexicon: Lexicon | None = None, letter_to_sound: LetterToSound | None = None) -> None:
        self._given_lexicon = lexicon
        self._given_letter_to_sound = letter_to_sound

    @functools.cached_property
    def lexicon(self) -> Lexicon:
        return self._given_lexicon or default_lexicon()

    @functools.cached_property
    def pronouncer(self) -> Pronouncer:
        return Pronouncer(self.lexicon, lambda: self._given_letter_to_sound or default_letter_to_sound())

    def check(self, text: str) -> None:
        """Raise :class:`TextError` for an empty text and for more than :data:`MOST_CHARACTERS`."""
        require_text(text)

    def __call__(self, text: str) -> PhoneText:
        """The phones of ``text``. Raises :class:`TextError` when nothing in it can be spoken."""
        self.check(text)
        read = self.read(text)
        if not read.words:
            raise TextError(nothing_to_say(read.dropped))
        return read

    def read(self, text: str) -> PhoneText:
        """The phones of a part of a text, none if nothing in it can be spoken."""
        normalised = normalise(text, self.lexicon)
        tokens = re.findall(r"[A-Za-z']+|[.,?!]", normalised.text)
        phones: list[str] = []
        words: list[SpokenWord] = []
        for position, token in enumerate(tokens):
            if token in ".,?!":
                if phones and phones[-1] != PAUSE:
                    phones.append(PAUSE)
                continue
            said = self._say(token, tokens[position + 1] if position + 1 < len(tokens) else "")
            if said.phones:
                words.append(SpokenWord(token, len(phones), len(phones) + len(said.phones), said.source))
                phones.extend(said.phones)
        if phones and phones[-1] == PAUSE:
            phones.pop()
        return PhoneText(text, normalised.text, tuple(phones), tuple(words), normalised.dropped)

    def _say(self, word: str, following: str) -> Pronunciation:
        if len(word) == 1 and word.isupper():
            name = self.lexicon.phones(f"{word.lower()}.")
            if name:
                return Pronunciation(name, LEXICON)
        word = word.lower()
        if word == "the" and following[:1].isalpha() and self._begins_with_vowel(following):
            return Pronunciation(THE_BEFORE_VOWEL, LEXICON)
        if word in WEAK_FORMS:
            return Pronunciation(WEAK_FORMS[word], LEXICON)
        return self.pronouncer.pronounce(word)

    def _begins_with_vowel(self, word: str) -> bool:
        phones = self._say(word, "").phones
        return bool(phones) and phones[0] in VOWELS


def require_text(text: str) -> None:
    """Raise :class:`TextError` for an empty text and for more than :data:`MOST_CHARACTERS`."""
    if not text.strip():
        raise TextError("There is no text to speak; type at least one word.")
    if len(text) > MOST_CHARACTERS:
        raise TextError(
            f"The text has {len(text):,} characters, and {MOST_CHARACTERS:,} is the limit; speak it in several parts."
        )


def nothing_to_say(dropped: tuple[str, ...]) -> str:
    """Why a text without words cannot be spoken; ``dropped`` are its characters without sound."""
    if dropped:
        return f"Nothing in the text can be spoken ({name_characters(dropped)}); type English words."
    return "The text has no words, only punctuation; type at least one word."


def name_characters(characters: tuple[str, ...]) -> str:
    """Characters for a sentence: each with its Unicode name if there are few, else the first ones and how many more."""
    if len(characters) <= 3:
        return ", ".join(f"{one} ({unicodedata.name(one, f'U+{ord(one):04X}').lower()})" for one in characters)
    rest = len(characters) - MOST_NAMED
    return " ".join(characters[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
