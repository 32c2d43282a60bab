"""Subtitles: when each sentence of a text is spoken, and files of them (library ``srt``)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import numpy as np

from paretone import files
from paretone.checks.speech import LEVEL_SECONDS, Speech, syllables
from paretone.front_end.speakable import has_letters, sentences

Timed = tuple[str, float, float]
"""A text, its start and its end in seconds."""
_SHORTEST_PAUSE = 0.06
_BEATS = 1.5
"""Syllables that the pause after a sentence is as long as."""
_SPREAD, _LEAST_SPREAD = 0.15, 0.2
"""Standard deviation of a sentence's length about what its syllables predict: a share, and seconds."""
_PAUSE_COUNTS, _LONGEST_COUNTED = 8.0, 0.5
"""Weight of a pause's seconds against squared deviations, and the seconds that count."""
_AROUND = 30.0
"""Seconds about the predicted end of a sentence in which it is looked for."""


def sentence_times(speech: Speech) -> tuple[Timed, ...]:
    """Sentences of the speech's text. They end in the pauses that fit their syllables best, by dynamic programming."""
    said = [one for one in sentences(speech.text) if has_letters(one)] or [speech.text]
    begin, end = speech.span
    beats = np.array([(syllables(one) or len(one) / 3) + _BEATS for one in said])
    expected = beats / beats.sum() * (end - begin)
    due = begin + np.cumsum(expected)
    # Without a pause nearby a sentence ends where it is due.
    pauses = [(first * LEVEL_SECONDS, last * LEVEL_SECONDS) for first, last in speech.pauses(_SHORTEST_PAUSE)]
    pauses = sorted({(a, b) for a, b in pauses if begin < a and b < end} | {(one, one) for one in due[:-1].tolist()})
    found = np.array([(begin, begin), *pauses, (end, end)])
    middles, lengths = found.mean(1), np.minimum(found[:, 1] - found[:, 0], _LONGEST_COUNTED)
    best = np.where(np.arange(len(found)) == 0, 0.0, np.inf)
    ways = []
    for number, seconds in enumerate(expected):
        spread = (_SPREAD * seconds) ** 2 + _LEAST_SPREAD**2
        before = np.flatnonzero(np.isfinite(best))
        here = np.flatnonzero(abs(middles - due[number]) < _AROUND) if number < len(said) - 1 else [len(found) - 1]
        took = middles[here][:, None] - middles[before][None]
        cost = np.where(took > 0, best[before] + (took - seconds) ** 2 / spread, np.inf)
        way = np.zeros(len(found), int)
        way[here] = before[cost.argmin(1)]
        best = np.full(len(found), np.inf)
        best[here] = cost.min(1) - _PAUSE_COUNTS * lengths[here]
        ways.append(way)
    places = [len(found) - 1]
    for way in reversed(ways):
        places.append(int(way[places[-1]]))
    places.reverse()
    return tuple(
        (one, float(found[a, 1]), float(found[b, 0])) for one, a, b in zip(said, places[:-1], places[1:], strict=True)
    )


def write_srt(path: Path, timed: Iterable[Timed]) -> None:
    import srt

    lines = [
        srt.Subtitle(number, timedelta(seconds=start), timedelta(seconds=end), text)
        for number, (text, start, end) in enumerate(timed, 1)
    ]
    files.write(path, srt.compose(lines).encode())
