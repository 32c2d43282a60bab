"""Pronunciations from the CMU Pronouncing Dictionary (``resources/lexicon/cmudict.dict``, BSD licence next to it).

``additions.dict`` in the same folder and format adds words that the dictionary lacks and settles words whose first
entry there is the rarer reading; it wins over the dictionary. Reading both takes about 0.1 s, and is done at the first
look-up."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from paretone.errors import CheckpointError
from paretone.front_end.phones import fold_arpabet
from paretone.paths import resource

DICTIONARY = ("lexicon", "cmudict.dict")
ADDITIONS = ("lexicon", "additions.dict")

Phones = tuple[str, ...]


class Lexicon:
    """Words, lower-case and with apostrophes, to phones."""

    def __init__(self, entries: dict[str, str]) -> None:
        """``entries`` are stressed ARPAbet strings by word."""
        self._entries = entries

    def __contains__(self, word: object) -> bool:
        return word in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def phones(self, word: str) -> Phones | None:
        """The phones of ``word``, or ``None`` when it is not listed."""
        entry = self._entries.get(word)
        return None if entry is None else tuple(fold_arpabet(symbol) for symbol in entry.split())

    def without(self, words: set[str]) -> Lexicon:
        """A copy that lacks ``words``, to measure what is made of words that no dictionary lists."""
        return Lexicon({word: entry for word, entry in self._entries.items() if word not in words})


def read_entries(path: Path) -> Iterator[tuple[str, str]]:
    """Pairs of word and stressed ARPAbet in the file's order; variants (``read(2)``) come under the word itself."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"The lexicon {path} cannot be read ({error}); install Paretone again.") from error
    for line in text.splitlines():
        word, _, entry = line.partition(" ")
        if word.endswith(")"):
            word = word[: word.rindex("(")]
        if "#" in entry:
            entry = entry[: entry.index("#")]
        yield word, entry


@functools.lru_cache(maxsize=1)
def default_lexicon() -> Lexicon:
    """The bundled dictionary with its additions, read once."""
    entries: dict[str, str] = {}
    for source in (ADDITIONS, DICTIONARY):
        for word, entry in read_entries(resource(*source)):
            entries.setdefault(word, entry)
    return Lexicon(entries)
