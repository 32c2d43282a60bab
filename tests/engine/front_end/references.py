"""Sentences with the phonemes that the teacher of natural speech reads in them (``reference.tsv``).

Columns: kind of text, sentence, the teacher's phonemes; where it reads wrongly also what is right, and what is wrong.
Recorded from hibari-tts 0.2.1; the sentences were written for this and are in no corpus. Kinds that begin with "class/"
have instead the words that are read, with a bar between sentences; a line break in the text is written as \\n.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paretone.front_end.phones import EDGE, timed_phones


@dataclass(frozen=True)
class Reference:
    kind: str
    text: str
    teacher: str
    """Phonemes."""
    right: str
    """The same if the teacher reads rightly."""
    wrong: str = ""
    """What the teacher does wrong."""


WRITTEN = "class/"


def written() -> tuple[tuple[str, str, str], ...]:
    """Semiotic class, text, and the words that are right."""
    rows = Path(__file__).with_name("reference.tsv").read_text(encoding="utf-8").splitlines()
    fields = [row.removeprefix(WRITTEN).split("\t") for row in rows if row.startswith(WRITTEN)]
    return tuple((kind, text.replace("\\n", "\n"), words) for kind, text, words in fields)


def heard(sentences: Sequence[str]) -> str:
    """The words of ``sentences``, without capitals and marks; letters that are spelled are joined ("P.M." is "pm")."""
    joined = (
        re.sub(r"(?<![A-Za-z])(?:[A-Za-z]\.)+", lambda one: one[0].replace(".", "") + " ", text) for text in sentences
    )
    return " | ".join(" ".join(re.findall(r"[\w']+", text.lower())) for text in joined)


@cache
def references() -> tuple[Reference, ...]:
    """Those with phonemes."""
    rows = Path(__file__).with_name("reference.tsv").read_text(encoding="utf-8").splitlines()
    fields = [row.split("\t") for row in rows if not row.startswith(WRITTEN)]
    return tuple(Reference(*row[:3], row[3] if len(row) > 3 else row[2], *row[4:]) for row in fields)


def phones(phonemes: str) -> list[str]:
    """Phones as models read them: a stress mark and its vowel are one; punctuation and blanks count."""
    return [name for name, _, _ in timed_phones((EDGE, *phonemes, EDGE), [1] * (len(phonemes) + 2), 1.0)][1:-1]


def errors(found: Sequence[str], expected: Sequence[str]) -> int:
    """Insertions, deletions and substitutions."""
    row = list(range(len(expected) + 1))
    for number, one in enumerate(found, 1):
        above, row = row, [number]
        for place, other in enumerate(expected):
            row.append(min(above[place + 1] + 1, row[place] + 1, above[place] + (one != other)))
    return row[-1]


def error_rate(pairs: Sequence[tuple[str, str]]) -> float:
    """Errors per phone that is expected; ``pairs`` are phonemes found and expected."""
    found = [(phones(one), phones(other)) for one, other in pairs]
    return sum(errors(*pair) for pair in found) / sum(len(expected) for _, expected in found)
