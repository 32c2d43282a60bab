"""What the bundled models read in a text, and the user's lexicon: the common part of ``paretone say``, Python and the
window. Torch-free, unless phonemes of unknown words are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from paretone.errors import TextError
from paretone.fields import typed
from paretone.front_end import pronunciations
from paretone.front_end.phonemiser import default_phonemiser
from paretone.front_end.pronunciations import HowToRead, forget, teach
from paretone.front_end.pronunciations import read_lexicon as lexicon
from paretone.front_end.speakable import language_of, nothing_to_say, require_text, skipped
from paretone.front_end.writing import Sentence, write_out
from paretone.sampling.options import PRONUNCIATIONS

__all__ = ["Saying", "forget", "lexicon", "say", "teach"]


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
        found = [
            {
                "words": one.text,
                **({"phonemes": said} if said else {}),
                "tokens": [
                    {"class": token.kind, "text": token.text, "words": token.words.strip()}
                    for token in one.tokens
                    if token.kind
                ],
            }
            for one, said in zip_longest(self.sentences, self.phonemes)
        ]
        return {"sentences": found, "notes": list(self.notes)}


@typed
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
    said = pronunciations.line(lexicon()) if words is None else PRONUNCIATIONS.check(words)
    how = HowToRead(british=dates == "british", pronunciations=str(said))
    pronunciations.taught(how.pronunciations)
    written = write_out(text, how.british)
    if not written.sentences:
        raise TextError(nothing_to_say(written.dropped))
    if not phones:
        return Saying(written.sentences, (), skipped(written.dropped))
    read = default_phonemiser().read_written(written, how.pronunciations)
    return Saying(read.written, read.sentences, read.notes)
