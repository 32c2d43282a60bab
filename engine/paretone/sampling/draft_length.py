"""Draft length of speculative decoding: predicted speed-up from acceptance and the cost of a draft pass, and the length
adapted while decoding. Torch-free.

Source of the prediction: Leviathan et al., arXiv 2211.17192, section 3.1 to 3.4.
"""

from __future__ import annotations

from collections import deque
from statistics import linear_regression, median


def expected_tokens(acceptance: float, length: int) -> float:
    """E: expected tokens of a cycle with ``length`` drafted tokens, each accepted with probability α, including the one
    that the target adds: (1 − α^(K+1)) / (1 − α)."""
    if not 0 <= acceptance <= 1:
        raise ValueError(f"An acceptance of {acceptance:g} is not a probability.")
    return sum(acceptance**step for step in range(length + 1))


def predicted_speed_up(tokens: float, length: float, cost: float, verification: float = 1.0) -> float:
    """E / (v + K·c): predicted speed-up of ``tokens`` per cycle over decoding one by one.

    ``cost`` is c, the time of a draft pass over that of a target pass for one token; ``verification`` is v, the time of
    a target pass over K + 1 tokens over that for one.
    """
    return tokens / (verification + length * cost)


LONGEST = 8
MEMORY = 15
"""Number of cycles for the median of times, so that an interrupted one does not count."""
ENOUGH = 3
"""Number of cycles of one length from which the cost of further tokens is measured."""
GROWTH, MOST_GROWTH = 0.07, 0.15
"""Relative cost of one more token in a target pass: initial value and upper limit, since measurements on a busy machine
are unreliable."""
FORGETTING = 0.98
"""Decay of a cycle's acceptance per further cycle."""
TRIED_EVERY, TRIED = 8, 2
"""Every n-th cycle drafts this many more tokens, to measure the cost of one more in a target pass."""


class AdaptiveLength:
    """Draft length with the most tokens per second, from acceptance and times of the last cycles; initially ``start``.
    May serve several requests in turn and keeps its measurements.

    A cycle of length K has (1 − α^(K+1)) / (1 − α) expected tokens and takes K draft passes and a target pass over K +
    1 tokens. Equal measurements give equal lengths; the distribution of the tokens does not depend on them.
    """

    def __init__(self, start: int = 3, longest: int = LONGEST) -> None:
        if not 1 <= start <= longest:
            raise ValueError(f"A draft length of {start} is not from 1 to {longest}.")
        self._longest = longest
        self._length = start
        self._cycles = 0
        # A prior: two of four tokens accepted.
        self._accepted, self._checked = 2.0, 4.0
        self._draft: deque[float] = deque(maxlen=MEMORY)
        self._target: deque[tuple[int, float]] = deque(maxlen=TRIED_EVERY * 2 * ENOUGH)
        """Tokens and seconds of target passes."""
        self._growth = GROWTH

    @property
    def acceptance(self) -> float:
        """α: share of checked tokens that are accepted."""
        return self._accepted / self._checked

    @property
    def cost_ratio(self) -> float | None:
        """c: time of a draft pass over that of a target pass for one token; ``None`` before the first measurement."""
        if not self._draft:
            return None
        return median(self._draft) / (self._level() * (1 + self._growth))

    def choose(self) -> int:
        """Length for the next cycle."""
        if self._cycles % TRIED_EVERY != TRIED_EVERY - 1:
            return self._length
        return self._length + TRIED if self._length + TRIED <= self._longest else max(1, self._length - TRIED)

    def observe(self, drafted: int, checked: int, accepted: int, draft_seconds: float, target_seconds: float) -> None:
        """Record a cycle: numbers of drafted, checked and accepted tokens, seconds."""
        if not drafted:
            return
        self._accepted = self._accepted * FORGETTING + accepted
        self._checked = self._checked * FORGETTING + checked
        self._draft.append(draft_seconds / drafted)
        self._target.append((drafted + 1, target_seconds))
        self._growth = self._measured_growth()
        self._cycles += 1
        draft, level = median(self._draft), self._level()

        def pace(length: int) -> float:
            seconds = length * draft + level * (1 + self._growth * (length + 1))
            return expected_tokens(self.acceptance, length) / seconds

        self._length = max(range(1, self._longest + 1), key=pace)

    def _measured_growth(self) -> float:
        """Cost of one more token in a target pass, from the lengths that occurred often enough."""
        times: dict[int, list[float]] = {}
        for rows, seconds in self._target:
            times.setdefault(rows, []).append(seconds)
        known = {rows: median(found) for rows, found in times.items() if len(found) >= ENOUGH}
        if len(known) < 2:
            return self._growth
        slope, base = linear_regression(list(known), list(known.values()))
        return min(max(slope / base, 0.0), MOST_GROWTH) if base > 0 else self._growth

    def _level(self) -> float:
        """Time of a target pass without drafts, estimated from the last passes."""
        return median(seconds / (1 + self._growth * rows) for rows, seconds in list(self._target)[-MEMORY:])
