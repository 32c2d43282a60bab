"""Phone durations of the corpus: the table from which the bundled model times new text."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.front_end.durations import context_keys
from engine.front_end.phones import PAUSE
from engine.training.corpora import Clip

FEWEST = 15
"""A mean over fewer phones than this is left out of the table, and the back-off serves instead."""
ABOUT = (
    "mean phone durations in seconds; key: phone/phrase_final(one of the last 3 phones before a pause)/class of "
    "previous/class of next, with back-off to fewer fields (phone/final/next, phone/final, phone); classes V vowel, "
    "C consonant, P pause"
)


def duration_table(clips: Iterable[Clip], phones: Iterable[str]) -> dict[str, float]:
    """Mean seconds by context, sorted, for the clips of one voice. The silence around a clip is not counted.

    Every one of ``phones`` is listed: one that the clips lack with the mean of all others.
    """
    found: dict[str, list[float]] = defaultdict(list)
    every: list[float] = []
    for clip in clips:
        inner = [(phone, end - start) for phone, start, end in clip.phones[:-1] if start > 0 or phone != PAUSE]
        names = [phone for phone, _ in inner]
        every += [seconds for _, seconds in inner]
        for position, (_, seconds) in enumerate(inner):
            for key in context_keys(names, position):
                found[key].append(seconds)
    frequent = {key: seconds for key, seconds in found.items() if len(seconds) >= FEWEST or "/" not in key}
    missing = {phone: every for phone in phones if phone not in found}
    return {key: round(sum(seconds) / len(seconds), 4) for key, seconds in sorted((frequent | missing).items())}


def write_duration_tables(path: Path, clips: Sequence[Clip], phones: Iterable[str]) -> None:
    """Write a ``durations.json`` with the table of every voice of ``clips``."""
    phones = tuple(phones)
    tables = {
        voice: duration_table((clip for clip in clips if clip.voice == voice), phones)
        for voice in sorted({clip.voice for clip in clips})
    }
    path.write_text(json.dumps({"about": ABOUT, "voices": tables}, indent=0) + "\n", encoding="utf-8")
