"""Find given words in a recording with pocketsphinx, and score how well each fits.

pocketsphinx holds the interpreter's lock while it listens, a second or two for a long recording, which would freeze the
window. Off the main thread it therefore runs in a separate process whose programme is this file, which imports nothing
of the application.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pocketsphinx

RATE = 16000
FRAMES_PER_SECOND = 100
SEARCH = {"beam": 1e-150, "pbeam": 1e-150, "wbeam": 1e-150, "bestpath": False}
"""Much wider beams than usual: badly fitting words are found as well, with low scores. Without ``bestpath``, which
moves words in the lattice so that their phones can no longer be placed."""

Segment = tuple[str, float, float]
"""Aligner phone, start and end in seconds."""


@dataclass(frozen=True)
class FoundWord:
    """A word of the transcript at its best place in the recording."""

    phones: tuple[Segment, ...]
    score: float
    """Mean log-likelihood of its sounds per frame, relative to the likeliest sounds; 0 or less."""

    @property
    def start(self) -> float:
        return self.phones[0][1]

    @property
    def end(self) -> float:
        return self.phones[-1][2]


def installed() -> bool:
    return sys.modules.get("pocketsphinx", False) is not None and find_spec("pocketsphinx") is not None


def found_words(raw: bytes, words: Sequence[str]) -> tuple[FoundWord, ...]:
    """Find ``words``, in the aligner's phones separated by blanks, in 16-bit samples at :data:`RATE`; empty without
    pocketsphinx, or if they cannot be fitted."""
    return _remembered(raw, tuple(words)) if words and installed() else ()


@lru_cache(maxsize=8)
def _remembered(raw: bytes, words: tuple[str, ...]) -> tuple[FoundWord, ...]:
    """Cached: the transcript check and the placement of phones both need it."""
    from paretone.own_process import heard_apart  # Here: the child process has only this file.

    found = heard_apart(__name__, raw, words, _found)
    return tuple(FoundWord(tuple((name, start, end) for name, start, end in phones), score) for phones, score in found)


def _found(raw: bytes, words: Sequence[str]) -> list[tuple[list[Segment], float]]:
    import pocketsphinx

    decoder = pocketsphinx.Decoder(samprate=RATE, loglevel="FATAL", lm=None, **SEARCH)
    names = [f"word{number}" for number in range(len(words))]
    for name, word in zip(names, words, strict=True):
        decoder.add_word(name, word, name == names[-1])
    decoder.set_align_text(" ".join(names))
    try:
        _run(decoder, raw)
        if decoder.hyp() is None:
            return []
        decoder.set_alignment()
        _run(decoder, raw)
        aligned = [list(word) for word in decoder.get_alignment()]
    except RuntimeError:
        return []
    found = []
    for word in aligned:
        sounds = [one for one in word if one.name != "SIL" and not one.name.startswith("+")]
        spans = [(one.start / FRAMES_PER_SECOND, (one.start + one.duration) / FRAMES_PER_SECOND) for one in sounds]
        named = [(one.name, *span) for one, span in zip(sounds, spans, strict=True)]
        if sounds:
            found.append((named, sum(one.score for one in sounds) / sum(one.duration for one in sounds)))
    return found


def _run(decoder: pocketsphinx.Decoder, raw: bytes) -> None:
    decoder.start_utt()
    decoder.process_raw(raw, full_utt=True)
    decoder.end_utt()


if __name__ == "__main__":
    given = json.loads(sys.stdin.buffer.readline())
    json.dump(_found(sys.stdin.buffer.read(), given), sys.stdout)
