"""How long phones last in the corpus: the table by which the bundled model speaks text of which no recording exists."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from engine.front_end.phones import PAUSE, VOWELS
from engine.training.corpora import Clip

FEWEST = 15
"""A mean over fewer phones than this is left out of the table, and the back-off serves instead."""
FINAL_REACH = 3
"""A phone counts as phrase-final when a pause is among so many phones after it."""
ABOUT = (
    "mean phone durations in seconds; key: phone/phrase_final(one of the last 3 phones before a pause)/class of "
    "previous/class of next, with back-off to fewer fields (phone/final/next, phone/final, phone); classes V vowel, "
    "C consonant, P pause"
)


def duration_table(clips: Iterable[Clip]) -> dict[str, float]:
    """Mean seconds by context, sorted, for the clips of one voice. The silence around a clip is not counted."""
    found: dict[str, list[float]] = defaultdict(list)
    for clip in clips:
        inner = [phone for phone in clip.phones[:-1] if phone[1] > 0 or phone[0] != PAUSE]
        names = [name for name, _, _ in inner]
        for index, (_, start, end) in enumerate(inner):
            for key in context_keys(names, index):
                found[key].append(end - start)
    return {
        key: round(sum(seconds) / len(seconds), 4)
        for key, seconds in sorted(found.items())
        if len(seconds) >= FEWEST or "/" not in key
    }


def context_keys(phones: Sequence[str], index: int) -> tuple[str, str, str, str]:
    """Keys of the table for one phone of a sentence, the most particular first."""
    phone = phones[index]
    following = [*phones[index + 1 : index + 1 + FINAL_REACH], PAUSE][:FINAL_REACH]
    final = f"{phone}/{int(PAUSE in following)}"
    previous = _kind(phones[index - 1]) if index else "P"
    after = _kind(following[0])
    return f"{final}/{previous}/{after}", f"{final}/{after}", final, phone


def _kind(phone: str) -> str:
    if phone == PAUSE:
        return "P"
    return "V" if phone in VOWELS else "C"
