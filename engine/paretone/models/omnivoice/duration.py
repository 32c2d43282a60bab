"""Duration of a text: by the kinds of its characters, and at the pace of the reference. Torch-free.

Source: ``RuleDurationEstimator`` of k2-fsa/OmniVoice (``omnivoice/utils/duration.py``).
"""

from __future__ import annotations

import bisect
import functools
import unicodedata

from paretone.models.omnivoice.tables import tables

USUAL_TEXT, USUAL_FRAMES = "Nice to meet you.", 25
"""Text and frames that give the pace without a reference."""
SHORT_FRAMES = 50
"""Estimates below this are made longer: short texts are spoken more slowly."""

_KINDS = {"M": "mark", "P": "punctuation", "S": "punctuation", "Z": "space", "N": "digit"}
"""Kinds of characters that go by their Unicode category, whatever their script."""


def weight(text: str) -> float:
    """Length of ``text``, in Latin letters."""
    return sum(map(_character, text))


def frames(text: str, reference: str = "", reference_frames: int = 0, speed: float = 1.0) -> int:
    """Frames that ``text`` takes at the pace of a ``reference`` that says so much in ``reference_frames``; at the usual
    pace if there is none. At least 1."""
    if not reference or not reference_frames or not weight(reference):
        reference, reference_frames = USUAL_TEXT, USUAL_FRAMES
    estimate = weight(text) / (weight(reference) / reference_frames)
    if 0 < estimate < SHORT_FRAMES:
        estimate = SHORT_FRAMES * (estimate / SHORT_FRAMES) ** (1 / 3)
    if speed != 1.0:
        estimate /= speed
    return max(1, int(estimate))


@functools.lru_cache(maxsize=4096)
def _character(one: str) -> float:
    known = tables()
    return known.duration_weights[_kind(one)]


def _kind(one: str) -> str:
    if one.isascii() and one.isalpha():
        return "latin"
    if one == " ":
        return "space"
    by_category = _KINDS.get(unicodedata.category(one)[0])
    if by_category is not None:
        return by_category
    ranges = tables().duration_ranges
    place = bisect.bisect_left(ranges, (ord(one), ""))
    return ranges[place][1] if place < len(ranges) else "cjk" if ord(one) > 0x20000 else "default"
