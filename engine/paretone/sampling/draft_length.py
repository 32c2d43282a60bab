"""Draft length of speculative decoding: predicted speed-up from acceptance and the cost of a draft pass, and the length
adapted while decoding. Torch-free.

Source of the prediction: Leviathan et al., arXiv 2211.17192, section 3.1 to 3.4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import accumulate
from operator import mul
from statistics import median


def predicted_speed_up(tokens: float, length: float, cost: float, verification: float = 1.0) -> float:
    """E / (v + K·c): predicted speed-up of ``tokens`` per cycle over decoding one by one. ``cost`` is c, the time of a
    draft pass over that of a target pass for one token; ``verification`` is v, the time of a target pass over K + 1
    tokens over that for one."""
    return tokens / (verification + length * cost)


LONGEST = 8
MEMORY = 15
"""Number of cycles for the median of times, so that an interrupted one does not count."""
ENOUGH = 3
"""Number of cycles of a length from which their time counts as measured."""
GROWTH = 0.1
"""Relative cost of one more drafted token while cycles of one length only were measured."""
FORGETTING = 0.98
"""Decay of a cycle's acceptance per further cycle."""
PRIOR = 4.0
"""Weight, in tokens, of what is expected of a draft's place: half accepted at the first, later as many as before."""
TRIED_EVERY, TRIED = 8, (1, -1, 2)
"""Every eighth cycle drafts one more, one fewer or two more tokens than the best length, in turn, to measure them."""


class AdaptiveLength:
    """Draft length with the most tokens per second, from acceptance and times of the last cycles; initially ``start``.
    May serve several requests in turn and keeps its measurements.

    A cycle of length K has 1 + α₁ + α₁·α₂ + … expected tokens, with the acceptance of each place of a draft measured by
    itself; its time is measured for each K, as a draft's first token takes longer than its others. Equal measurements
    give equal lengths; the distribution of the tokens does not depend on them.
    """

    def __init__(self, start: int = 3, longest: int = LONGEST) -> None:
        if not 1 <= start <= longest:
            raise ValueError(f"A draft length of {start} is not from 1 to {longest}.")
        self._longest = longest
        self._length = start
        self._cycles = 0
        self._accepted, self._checked = ([0.0] * longest for _ in range(2))
        """By place of a draft."""
        self._spent: dict[int, deque[float]] = {}
        """Seconds of cycles by their drafted tokens."""

    @property
    def acceptances(self) -> tuple[float, ...]:
        """αᵢ: share of the tokens at each place of a draft that are accepted, if all before them are."""
        found, expected = [], 0.5
        for accepted, checked in zip(self._accepted, self._checked, strict=True):
            expected = (accepted + PRIOR * expected) / (checked + PRIOR)
            found.append(expected)
        return tuple(found)

    def choose(self) -> int:
        """Length for the next cycle."""
        if self._cycles % TRIED_EVERY != TRIED_EVERY - 1:
            return self._length
        more = TRIED[self._cycles // TRIED_EVERY % len(TRIED)]
        return min(max(self._length + more, 1), self._longest)

    def observe(self, drafted: int, accepted: int, seconds: float) -> None:
        """Record a cycle: numbers of drafted and accepted tokens, seconds of drafting and checking."""
        if not drafted:
            return
        for values in (self._accepted, self._checked):
            values[:] = [FORGETTING * value for value in values]
        for place in range(min(accepted + 1, drafted, self._longest)):
            self._checked[place] += 1
            self._accepted[place] += place < accepted
        self._spent.setdefault(drafted, deque(maxlen=MEMORY)).append(seconds)
        self._cycles += 1
        reached, measured = [1.0, *accumulate(self.acceptances, mul)], self._measured

        def pace(length: int) -> float:
            return sum(reached[: length + 1]) / _seconds(length, measured)

        self._length = max(range(1, self._longest + 1), key=pace)

    @property
    def _measured(self) -> dict[int, float]:
        """Times of cycles by their drafted tokens, ascending: of those that count as measured, else of all."""
        found = sorted(self._spent.items())
        often = {drafted: median(seconds) for drafted, seconds in found if len(seconds) >= ENOUGH}
        known = often or {drafted: median(seconds) for drafted, seconds in found}
        # More tokens never take less time: what seems so was disturbed.
        return dict(zip(known, accumulate(known.values(), max), strict=True))


def _seconds(length: int, measured: Mapping[int, float]) -> float:
    """Time of a cycle that drafts ``length`` tokens: as ``measured``, else on a straight line through measured ones."""
    known, seconds = list(measured), list(measured.values())
    below = [place for place, count in enumerate(known) if count <= length]
    if not below or len(below) == len(known):
        nearest = -1 if below else 0
        guessed = seconds[nearest] * (1 + GROWTH * length) / (1 + GROWTH * known[nearest])
        if len(known) == 1:
            return guessed
        line = seconds[nearest] + (seconds[-1] - seconds[0]) * (length - known[nearest]) / (known[-1] - known[0])
        return line if below else max(line, guessed)  # A disturbed cycle must not make short ones take no time.
    left = below[-1]
    share = (length - known[left]) / (known[left + 1] - known[left])
    return seconds[left] + share * (seconds[left + 1] - seconds[left])
