"""What the bundled models read in a text, and the user's lexicon: the common part of ``paretone say``, Python and the
window. Torch-free, unless phonemes of unknown words are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from paretone.errors import TextError
from paretone.front_end import pronunciations
from paretone.front_end.phonemiser import NaturalPhonemiser
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.speakable import language_of, name_characters, nothing_to_say, require_text
from paretone.front_end.writing import Sentence, write_out
from paretone.sampling.options import PRONUNCIATIONS


@dataclass(frozen=True)
class Saying:
    """A text as it is read. ``str()`` gives the sentences, one per line."""

    sentences: tuple[Sentence, ...]
    phonemes: tuple[str, ...]
    """Of each sentence; empty unless asked for."""
    notes: tuple[str, ...]
    """Sentences on what was skipped or guessed."""

    def __str__(self) -> str:
        return "\n".join(self.phonemes or (one.text for one in self.sentences))

    def to_json(self) -> dict[str, object]:
        phonemes = self.phonemes or [None] * len(self.sentences)
        return {
            "sentences": [
                {
                    "words": one.text,
                    **({} if said is None else {"phonemes": said}),
                    "tokens": [
                        {"class": token.kind, "text": token.text, "words": token.words.strip()}
                        for token in one.tokens
                        if token.kind
                    ],
                }
                for one, said in zip(self.sentences, phonemes, strict=True)
            ],
            "notes": list(self.notes),
        }


def say(text: str, *, dates: str = "american", words: str | None = None, phones: bool = False) -> Saying:
    """How the bundled models read ``text``; with ``phones`` in phonemes, too. ``dates``: ``"american"`` or
    ``"british"``; ``words``: pronunciations such as ``"Nguyen = /wɪn/"`` in place of the lexicon.

    >>> print(paretone.say("On 3/4 it cost $5-10."))
    On March fourth it cost five to ten dollars.

    Raises :class:`TextError`, also for other languages.
    """
    if dates not in ("american", "british"):
        raise TextError(f"dates must be american or british, not {dates!r}.")
    require_text(text)
    language_of(text, "the bundled models read only English")
    said = pronunciations.line(pronunciations.read_lexicon()) if words is None else PRONUNCIATIONS.check(words)
    how = HowToRead(dates == "british", str(said))
    pronunciations.taught(how.pronunciations)
    written = write_out(text, how.british)
    if not written.sentences:
        raise TextError(nothing_to_say(written.dropped))
    if phones:
        read = _phonemiser()(text, how)
        sounds = tuple(_phonemiser().phonemes(one.text, how.pronunciations) for one in written.sentences)
        return Saying(written.sentences, sounds, read.notes)
    skipped = f"Skipped unsupported characters: {name_characters(written.dropped)}."
    return Saying(written.sentences, (), (skipped,) if written.dropped else ())


def teach(word: str, said: str) -> str:
    """Have the bundled models say ``word`` as a respelling such as "PAIR-uh-tone", or as IPA between slashes; return
    its phonemes. Raises :class:`TextError`."""
    return pronunciations.teach(word, said)


def forget(word: str) -> None:
    """Say ``word`` as before. Raises :class:`TextError` if it was not taught."""
    pronunciations.forget(word)


def lexicon() -> Mapping[str, str]:
    """Words that were taught, with their pronunciations. Raises :class:`TextError` for a damaged file."""
    return pronunciations.read_lexicon()


@lru_cache(maxsize=1)
def _phonemiser() -> NaturalPhonemiser:
    return NaturalPhonemiser()
