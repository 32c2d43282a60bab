"""Phones of the bundled MegaTTS 3: our English phones under the official numbers, laid out over mel frames.

Forty of the 44 official English phones are those of :mod:`engine.front_end.phones` by the same names; ``ehr``, ``iyr``,
``oh`` and ``uwr`` are British vowels, which a CMU lexicon writes with two phones or not at all: the bundled model has
never seen them, nor any Chinese phone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.errors import TextError
from engine.front_end.phones import PAUSE
from engine.front_end.timed_phone import TimedPhone
from engine.models.megatts3.phone_table import ENGLISH, FIRST_ENGLISH, SILENCE

_NUMBERS = {name: FIRST_ENGLISH + position for position, name in enumerate(ENGLISH)} | {PAUSE: SILENCE}
KNOWN = frozenset(_NUMBERS)
"""Our names of the phones that it knows."""


def phone_ids(phones: Iterable[str]) -> np.ndarray:
    """(n,) int64 official numbers. Raises :class:`TextError` for what is neither an English phone nor a pause."""
    try:
        return np.array([_NUMBERS[phone] for phone in phones], dtype=np.int64)
    except KeyError as error:
        raise TextError(f"MegaTTS 3 has no English phone {error.args[0]!r}; use those of the CMU dictionary.") from None


def phones_of_frames(phones: Sequence[TimedPhone], frames: int, rate: int, hop: int) -> np.ndarray:
    """(frames,) int64, ``mel2ph`` of the official code: the place, from one, of the phone that sounds at the middle of
    each frame, ``(i + 0.5) · hop / rate`` seconds. Frames after the last phone get the last phone."""
    ends = np.array([end for _, _, end in phones])
    middles = (np.arange(frames) + 0.5) * hop / rate
    return np.searchsorted(ends, middles, side="right").clip(max=len(phones) - 1) + 1
