"""The phones of natural speech: the symbols of the teacher's text front end, with stress on the vowel that carries it.

The teacher writes American English in the alphabet of Kokoro's ``misaki``: one letter a sound, capitals for diphthongs,
``ˈ`` and ``ˌ`` in front of stressed vowels, and punctuation and blanks between words. All of them last. Here a stress
mark and its vowel are one phone, which lasts as long as both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from paretone.front_end.timed_phone import TimedPhone

STRESSES = ("", "ˌ", "ˈ")
VOWELS = tuple("AIOWYiuæɐɑɔəɛɜɪʊʌᵊᵻ")
CONSONANTS = tuple("Tbdfhjklmnpstvwzðŋɡɹɾʃʒʔʤʧθ")
PUNCTUATION = tuple(';:,.!?—…"()“”')
BLANK = "_"
EDGE = "^"
"""The silence before the first symbol and after the last."""
SILENT = (EDGE, BLANK, *PUNCTUATION)
PHONES = (EDGE, BLANK, *PUNCTUATION, *CONSONANTS, *(stress + vowel for vowel in VOWELS for stress in STRESSES))


def timed_phones(symbols: Sequence[str], frames: Sequence[int], seconds: float) -> tuple[TimedPhone, ...]:
    """Phones of ``symbols`` that last ``frames`` frames of ``seconds`` each; those that do not last are left out."""
    phones: list[TimedPhone] = []
    mark, waiting, first = "", 0, 0
    for symbol, length in zip(symbols, frames, strict=True):
        if symbol in STRESSES:
            mark, waiting = symbol, waiting + length
            continue
        name = BLANK if symbol == " " else mark + symbol if symbol in VOWELS else symbol
        last = first + waiting + length
        if last > first:
            phones.append((name, round(first * seconds, 4), round(last * seconds, 4)))
        mark, waiting, first = "", 0, last
    return tuple(phones)


def words(phones: Sequence[TimedPhone]) -> Iterator[list[int]]:
    """The places in ``phones`` of those of each word."""
    return _between(phones, SILENT)


def phrases(phones: Sequence[TimedPhone]) -> Iterator[list[int]]:
    """The places in ``phones`` of those of each phrase, blanks between its words included."""
    return _between(phones, (EDGE, *PUNCTUATION))


def last_sound(phones: Sequence[TimedPhone]) -> float:
    """Seconds at which the last of ``phones`` that is heard ends; 0 if none is."""
    return max((end for name, _, end in phones if name not in SILENT), default=0.0)


def _between(phones: Sequence[TimedPhone], apart: Sequence[str]) -> Iterator[list[int]]:
    group: list[int] = []
    for place, (name, _, _) in enumerate(phones):
        if name in apart:
            if group:
                yield group
            group = []
        else:
            group.append(place)
    if group:
        yield group


def respaced(
    phones: Sequence[TimedPhone],
    weights: Callable[[np.ndarray], np.ndarray],
    groups: Callable[[Sequence[TimedPhone]], Iterator[list[int]]] = words,
) -> tuple[TimedPhone, ...]:
    """``phones`` with other lengths inside of words or other ``groups``, which keep theirs: in proportion to what
    ``weights`` makes of the lengths (n,) of a group's phones."""
    spaced = list(phones)
    for group in groups(phones):
        start, end = phones[group[0]][1], phones[group[-1]][2]
        shares = weights(np.array([phones[place][2] - phones[place][1] for place in group]))
        edges = (start + np.cumsum([0.0, *shares]) * (end - start) / shares.sum()).tolist()
        for place, first, last in zip(group, edges[:-1], edges[1:], strict=True):
            spaced[place] = (phones[place][0], first, last)
    return tuple(spaced)
