"""English text to the phonemes of natural speech, sentence by sentence.

The reference is the front end of hibari-tts, which made the phones that bundled models learnt from; what it reads
rightly is read alike (``tests/engine/front_end/natural/reference.tsv`` says how nearly). The data are the same; the
code is ours and needs neither spaCy nor onnxruntime.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from paretone.errors import TextError
from paretone.front_end.chunking import sentences
from paretone.front_end.natural.lexicon import Lexicon, default_lexicon
from paretone.front_end.natural.sentences import ReadSentence, ReadWord, SentenceReader
from paretone.front_end.natural.tagger import default_tagger
from paretone.front_end.speakable import MOST_NAMED, name_characters, nothing_to_say, require_text
from paretone.front_end.writing import write_out

_MARK = r"[;:,.!?—…()\"]"
_HEARD = (
    (re.compile(r"\.{2,}|…"), "…"),
    (re.compile(rf"\s*…\s*(?={_MARK}|$)"), "."),
    (re.compile(r"\s*(?:…|\(|\))\s*"), ", "),
    (re.compile(r'"'), ""),
    (re.compile(r"[\s.,!]*\?[\s.,!?]*"), "? "),
    (re.compile(r"[\s.,]*![\s.,!]*"), "! "),
    (re.compile(r"[\s,]*([;:.—])[\s;:,.—]*"), r"\1 "),
    (re.compile(r"[\s,]*,[\s,]*"), ", "),
    (re.compile(r"(?<=\S)—"), " —"),
    (re.compile(rf"^(?:{_MARK}|\s)+"), ""),
)
"""Brackets and dots are pauses, several marks are one, and blanks are where the teacher has them."""


def familiar(phonemes: str) -> str:
    """``phonemes`` with the punctuation that the models have heard: a pause for brackets and dots, one mark where
    there are several."""
    for pattern, marks in _HEARD:
        phonemes = pattern.sub(marks, phonemes)
    return phonemes.strip()


@dataclass(frozen=True)
class NaturalText:
    """A text as it will be spoken."""

    text: str
    spoken: str
    """The text with everything written out in words."""
    sentences: tuple[str, ...]
    """Phonemes of every sentence that has any: sounds, stress marks, punctuation, and blanks between words."""
    words: tuple[ReadWord, ...]
    dropped: tuple[str, ...]
    """Characters that cannot be spoken, each once."""

    @property
    def guessed(self) -> tuple[str, ...]:
        """Words that the dictionary lacks, each once: their pronunciation is a good guess."""
        return tuple(dict.fromkeys(word.text for word in self.words if not word.listed))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user that name what was dropped and what was guessed; empty when nothing was."""
        found = []
        if self.dropped:
            found.append(f"Skipped unsupported characters: {name_characters(self.dropped)}.")
        if self.guessed:
            words, rest = ", ".join(self.guessed[:MOST_NAMED]), len(self.guessed) - MOST_NAMED
            found.append(f"Read by rule, not in the lexicon: {words}{f' and {rest} more' if rest > 0 else ''}.")
        return tuple(found)


def _read_by_rule(word: str) -> str:
    """A word that the dictionary lacks."""
    from paretone.front_end.natural.unknown_words import default_unknown_words  # Needs torch.

    return default_unknown_words()(word)


class NaturalPhonemiser:
    """Text to phonemes. Loads dictionary and tagger at the first use, the network at the first unknown word."""

    def __init__(self, lexicon: Lexicon | None = None) -> None:
        self._given_lexicon = lexicon

    @functools.cached_property
    def _reader(self) -> SentenceReader:
        return SentenceReader(self._given_lexicon or default_lexicon(), default_tagger(), _read_by_rule)

    def check(self, text: str) -> None:
        """Raise :class:`TextError` for an empty text and for one that is too long."""
        require_text(text)

    def __call__(self, text: str) -> NaturalText:
        """The phonemes of ``text``. Raises :class:`TextError` when nothing in it can be spoken."""
        self.check(text)
        read = self.read(text)
        if not read.sentences:
            raise TextError(nothing_to_say(read.dropped))
        return read

    def read(self, text: str) -> NaturalText:
        """The phonemes of a part of a text, none if nothing in it can be spoken."""
        written = [write_out(sentence) for sentence in sentences(text)]
        read = [self._reader(one.text) for one in written]
        return NaturalText(
            text,
            " ".join(one.text for one in written),
            tuple(familiar(one.phonemes) for one in read if one.words),
            tuple(word for one in read for word in one.words),
            tuple(dict.fromkeys(character for one in written for character in one.dropped)),
        )

    def as_the_teacher(self, text: str) -> list[ReadSentence]:
        """The sentences of ``text`` with all of the teacher's punctuation, to be compared with it."""
        return [self._reader(write_out(sentence).text) for sentence in sentences(text)]
