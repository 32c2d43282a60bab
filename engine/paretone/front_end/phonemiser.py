"""English text to the phonemes of natural speech, sentence by sentence.

The reference is the front end of hibari-tts, which made the phones in the bundled models' training speech; correct
readings are reproduced (agreement: ``tests/engine/front_end/reference.tsv``). The data are the same; the code is ours
and needs neither spaCy nor onnxruntime.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from paretone.errors import TextError
from paretone.front_end.lexicon import PRIMARY, Context, Lexicon, default_lexicon, unstressed, weakened, weight, with_s
from paretone.front_end.numbers import ONES, TENS
from paretone.front_end.phones import CONSONANTS, PUNCTUATION, VOWELS
from paretone.front_end.pronunciations import AS_USUAL, HowToRead, taught
from paretone.front_end.speakable import MOST_NAMED, nothing_to_say, require_text, skipped
from paretone.front_end.tagger import Tagger, Token, default_tagger, tokens
from paretone.front_end.writing import Sentence, Written, write_out
from paretone.front_end.written_forms import listed, table
from paretone.observer import may_stop
from paretone.reading import named_first

# --- Words whose neighbours decide the pronunciation better than the tagger's part of speech does ---------------------
_PARTS_OF_SPEECH = table("part of speech")
"""By a word and the next."""
_NOT_OBJECTS = listed("no object")
"""Words before "object to" that make it a verb."""
_METAL = listed("metal")
_LEAD = "lˈɛd"


def settled_tag(words: Sequence[str], place: int, tag: str) -> str:
    """Correct the ``tag`` that the tagger gave the word at ``place``."""
    pair = f"{words[place].lower()} {_following(words, place)}"
    if pair == "object to" and place and words[place - 1].lower() in _NOT_OBJECTS:
        return "VB"
    return _PARTS_OF_SPEECH.get(pair, tag)


def _following(words: Sequence[str], place: int) -> str:
    return words[place + 1].lower() if place + 1 < len(words) else ""


# --- A sentence in plain words to phonemes: tokens, parts of speech, pronunciations, and sentence context -------------
# Words are pronounced from last to first, because small words depend on the next sound ("the apple"). Words missing
# from the dictionary are composed of listed parts ("well-known", "YouTube"); if parts are missing too, the network for
# unknown words reads them.
_PAUSES = frozenset(PUNCTUATION) - frozenset('"“”()')
_SOUNDS = frozenset((*VOWELS, *CONSONANTS)) - frozenset("ɐᵊT")
"""Sounds that decide the form of a small word before them."""
_RUNS = re.compile(r"'?[^\W\d_]+(?:'[^\W\d_]+)*|\d+|[^\w\s]|_")
_HUMPS = re.compile(r"(?<=[a-zß-öø-ÿ])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SILENT = frozenset("',-._/")
_LETTERS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_DIGITS = frozenset((*ONES, *TENS))
_PLURAL_LETTERS = re.compile(r"([A-Z]{2,})('?s)")
MOST_PARTS = 32
"""Maximum number of parts in one dictionary look-up."""


@dataclass(frozen=True)
class ReadWord:
    text: str
    phonemes: str
    listed: bool
    """Whether the dictionary lists it, or its parts."""


@dataclass(frozen=True)
class ReadSentence:
    phonemes: str
    """Sounds with stress marks, punctuation, and blanks between words."""
    words: tuple[ReadWord, ...]


@dataclass
class _Part:
    """A word, or a part of one."""

    text: str
    tag: str
    phonemes: str | None = None

    @cached_property
    def length(self) -> int:
        """Number of letters, capitals counted twice."""
        return sum(2 - (one == one.lower()) for one in self.text)


@dataclass
class _Word:
    """Parts without blanks between them, or a mark."""

    parts: list[_Part]
    blank: bool = False
    mark: str | None = None
    listed: bool = True
    phonemes: str = ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


class SentenceReader:
    def __init__(self, lexicon: Lexicon, tagger: Tagger, unknown: Callable[[str], str]) -> None:
        """``unknown`` gives phonemes of words missing from the dictionary."""
        self._lexicon, self._tagger, self._unknown = lexicon, tagger, unknown

    def __call__(self, text: str, taught: Mapping[str, str] = {}) -> ReadSentence:
        """``taught``: phonemes of words in small letters, before those of the dictionary."""
        words = self._words(tokens(text))
        context = Context()
        for word in reversed(words):
            may_stop()
            word.phonemes = word.mark if word.mark is not None else self._pronounce(word, context, taught)
            context = _after(context, word.phonemes, "" if word.mark is not None else word.text)
        for before, word, after in zip(words, words[1:], words[2:], strict=False):
            if word.text == "point" and before.text in _DIGITS and after.text in _DIGITS:
                word.phonemes = unstressed(word.phonemes)
        phonemes = "".join(word.phonemes + " " * word.blank for word in words)
        spoken = tuple(
            ReadWord(one.text, one.phonemes, one.listed) for one in words if one.mark is None and one.phonemes
        )
        return ReadSentence(re.sub(" +", " ", phonemes).strip(), spoken)

    def _words(self, found: Sequence[Token]) -> list[_Word]:
        words: list[_Word] = []
        open_word = False
        texts = [token.text for token in found]
        for place, (token, tag) in enumerate(zip(found, self._tagger(texts), strict=True)):
            if token.mark is not None:
                words.append(_Word([], token.blank, token.mark))
                open_word = False
                continue
            if not open_word:
                words.append(_Word([]))
            if token.text.lower() == "lead" and _following(texts, place) in _METAL:
                words[-1].parts.append(_Part(token.text, tag, _LEAD))
            else:
                tag = settled_tag(texts, place, tag)
                words[-1].parts += [_Part(one, tag) for run in _RUNS.findall(token.text) for one in _HUMPS.split(run)]
            words[-1].blank = token.blank
            open_word = not token.blank
        return words

    def _pronounce(self, word: _Word, context: Context, taught: Mapping[str, str]) -> str:
        """Pronounce ``word`` from its end, using the longest parts in the dictionary."""
        parts, end = word.parts, len(word.parts)
        following = context
        while end:
            first = max(0, end - MOST_PARTS)
            start, said = self._longest(parts[first:end], following, taught)
            start += first
            if said is None and parts[end - 1].text not in _SILENT:
                word.listed = False
                return " ".join(filter(None, map(self._unknown, _LETTERS.findall(word.text))))
            parts[start].phonemes = said or ""
            following = _after(following, said or "", parts[start].text)
            end = start
        return _joined([part for part in parts if part.phonemes is not None])

    def _longest(self, parts: Sequence[_Part], context: Context, taught: Mapping[str, str]) -> tuple[int, str | None]:
        """Start and phonemes of the longest run of parts, up to the last one, that can be pronounced."""
        if parts[-1].phonemes is not None:
            return len(parts) - 1, parts[-1].phonemes
        runs = []
        text, tag, most = "", "", 0
        for start in reversed(range(len(parts))):
            part = parts[start]
            text = part.text + text
            # The part of speech is that of the longest part, capitals counted twice; of equals, the first.
            if part.length >= most:
                tag, most = part.tag, part.length
            runs.append((start, text, tag))
        for start, text, tag in reversed(runs):
            said = _taught(text.casefold(), taught) or self._listed(text, tag, context)
            if said is not None:
                return start, said
        return len(parts) - 1, None

    def _listed(self, text: str, tag: str, context: Context) -> str | None:
        said = self._lexicon.pronounce(text, tag, context)
        plural = _PLURAL_LETTERS.fullmatch(text)
        if said is None and plural:
            letters = self._lexicon.spelled(plural[1])
            return letters and f"{letters}z"
        return said


def _taught(word: str, taught: Mapping[str, str]) -> str:
    """Phonemes that a user taught for ``word`` or for its stem; empty without any."""
    stem = taught.get(word.removesuffix("'s"), "")
    return with_s(stem) if stem and word.endswith("'s") else taught.get(word, "")


def _joined(parts: Sequence[_Part]) -> str:
    """The phonemes of a word of ``parts``: separate words if joined by a slash or the like, otherwise a compound whose
    weaker half loses stress."""
    if any(part.text in "/&+" for part in parts):
        return " ".join(part.phonemes for part in parts if part.phonemes)
    spoken = [part for part in parts if part.phonemes]
    strengths = sorted(
        (PRIMARY in (part.phonemes or ""), weight(part.phonemes or ""), place) for place, part in enumerate(spoken)
    )
    weaker: list[int] = []
    if len(spoken) == 2 and len(spoken[0].text) == 1:
        weaker = [1]
    elif len(spoken) > 1 and sum(primary for primary, _, _ in strengths) > (len(spoken) + 1) // 2:
        weaker = [place for _, _, place in strengths[: len(spoken) // 2]]
    return "".join(
        weakened(part.phonemes or "") if place in weaker else part.phonemes or "" for place, part in enumerate(spoken)
    )


def _after(context: Context, phonemes: str, text: str) -> Context:
    """Context for a word before ``phonemes``."""
    first = next((one for one in phonemes if one in _SOUNDS or one in _PAUSES), None)
    vowel = context.vowel if first is None else None if first in _PAUSES else first in VOWELS
    return Context(vowel, text in ("to", "To", "TO"))


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
"""Brackets and dots become pauses, several marks become one, blanks are placed as in the teacher's output."""


def familiar(phonemes: str) -> str:
    """Reduce punctuation to that in the training speech: pauses for brackets and dots, one mark in place of several."""
    for pattern, marks in _HEARD:
        phonemes = pattern.sub(marks, phonemes)
    return phonemes.strip()


@dataclass(frozen=True)
class NaturalText:
    """A text in spoken form."""

    written: tuple[Sentence, ...]
    """Its sentences that have words, in words."""
    sentences: tuple[str, ...]
    """Phonemes of each: sounds, stress marks, punctuation, and blanks between words."""
    words: tuple[ReadWord, ...]
    dropped: tuple[str, ...]
    """Characters that cannot be spoken, each once."""

    @property
    def guessed(self) -> tuple[str, ...]:
        """Words missing from the dictionary, each once; their pronunciation is estimated."""
        return tuple(dict.fromkeys(word.text for word in self.words if not word.listed))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user on dropped characters and estimated pronunciations; empty without either."""
        guessed = f"Read by rule, not in the lexicon: {named_first(self.guessed, MOST_NAMED)}."
        return (*skipped(self.dropped), *((guessed,) if self.guessed else ()))


def _read_by_rule(word: str) -> str:
    """Pronounce a word missing from the dictionary."""
    may_stop()
    # Imported by name: most texts need neither the network nor torch.
    return str(import_module("paretone.front_end.networks").default_unknown_words()(word))


_DOTTED_LAST = re.compile(r"(?<![\w.'])((?:[A-Za-z]\.)+)([”\"')]*)$")
"""An abbreviation whose full stop also ends the sentence: the tagger knows it with two."""


class NaturalPhonemiser:
    """Text to phonemes. Loads dictionary and tagger at the first use, the network at the first unknown word."""

    @functools.cached_property
    def _reader(self) -> SentenceReader:
        return SentenceReader(default_lexicon(), default_tagger(), _read_by_rule)

    def __call__(self, text: str, how: HowToRead = AS_USUAL) -> NaturalText:
        """The phonemes of ``text``. Raises :class:`TextError` if it is empty or too long or cannot be spoken."""
        require_text(text)
        read = self.read(text, how)
        if not read.sentences:
            raise TextError(nothing_to_say(read.dropped))
        return read

    def read(self, text: str, how: HowToRead = AS_USUAL) -> NaturalText:
        """The phonemes of part of a text; empty if nothing in it can be spoken."""
        return self.read_written(write_out(text, how.british), how.pronunciations)

    def read_written(self, written: Written, pronunciations: str = "") -> NaturalText:
        read = [(one, self.sentence(one.text, pronunciations)) for one in written.sentences]
        read = [(one, said) for one, said in read if said.words]
        phonemes = tuple(familiar(said.phonemes) for _, said in read)
        words = tuple(word for _, said in read for word in said.words)
        return NaturalText(tuple(one for one, _ in read), phonemes, words, written.dropped)

    def phonemes(self, sentence: str, pronunciations: str = "") -> str:
        """Phonemes of a sentence that is in words already; empty if nothing in it can be spoken."""
        read = self.sentence(sentence, pronunciations)
        return familiar(read.phonemes) if read.words else ""

    def sentence(self, text: str, pronunciations: str = "") -> ReadSentence:
        """A sentence in words, with all of the teacher's punctuation."""
        return self._reader(_DOTTED_LAST.sub(r"\1.\2", text), taught(pronunciations))


@functools.lru_cache(maxsize=1)
def default_phonemiser() -> NaturalPhonemiser:
    return NaturalPhonemiser()
