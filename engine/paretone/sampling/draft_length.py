"""Draft length of speculative decoding: predicted speed-up from acceptance and the cost of a draft pass, and the length
adapted while decoding. Torch-free.

Source of the prediction: Leviathan et al., arXiv 2211.17192, section 3.1 to 3.4.
"""

from __future__ import annotations

from collections import deque
from statistics import linear_regression, median


def expected_tokens(acceptance: float, length: int) -> float:
    """E: tokens of a cycle in which ``length`` tokens are drafted and each is accepted with probability α, the one that
    the target adds included: (1 − α^(K+1)) / (1 − α)."""
    if not 0 <= acceptance <= 1:
        raise ValueError(f"An acceptance of {acceptance:g} is not a probability.")
    return sum(acceptance**step for step in range(length + 1))


def predicted_speed_up(tokens: float, length: float, cost: float, verification: float = 1.0) -> float:
    """E / (v + K·c): predicted speed-up of ``tokens`` per cycle over one by one.

    ``cost`` is c, the time of a draft pass over that of a target pass for one token; ``verification`` is v, the time of
    a target pass over K + 1 tokens over that for one.
    """
    return tokens / (verification + length * cost)


LONGEST = 8
MEMORY = 15
"""Number of cycles for the median of times, so that an interrupted one does not count."""
ENOUGH = 3
"""Number of cycles of one length whose median shows the cost of further tokens in a target pass."""
GROWTH, MOST_GROWTH = 0.07, 0.15
"""Relative cost of one more token in a target pass: initial value, and upper limit, since measurements on a busy
machine may be anything."""
FORGETTING = 0.98
"""Weight of an acceptance after one cycle."""
TRIED_EVERY, TRIED = 8, 2
"""In every n-th cycle the draft is longer by this number of tokens, to measure the cost of one more in a target
pass."""


class AdaptiveLength:
    """The draft length with the most tokens per second, by acceptance and times of the last cycles; initially
    ``start``. It can serve several requests in turn and keeps what it learnt.

    Expected tokens of a cycle of length K are (1 − α^(K+1)) / (1 − α), its time is K draft passes and a target pass
    over K + 1 tokens. Of equal measurements come equal lengths; the distribution of the tokens does not depend on them.
    """

    def __init__(self, start: int = 3, longest: int = LONGEST) -> None:
        if not 1 <= start <= longest:
            raise ValueError(f"A draft length of {start} is not from 1 to {longest}.")
        self._longest = longest
        self._length = start
        self._cycles = 0
        # A prior: as if half of a few tokens had been accepted.
        self._accepted, self._checked = 2.0, 4.0
        self._draft: deque[float] = deque(maxlen=MEMORY)
        self._target: deque[tuple[int, float]] = deque(maxlen=TRIED_EVERY * 2 * ENOUGH)
        """Tokens of a target pass, and its seconds."""
        self._growth = GROWTH

    @property
    def acceptance(self) -> float:
        """α: the share of checked tokens that are accepted."""
        return self._accepted / self._checked

    @property
    def cost_ratio(self) -> float | None:
        """c: a draft pass over a target pass for one token; ``None`` before anything was measured."""
        if not self._draft:
            return None
        return median(self._draft) / (self._level() * (1 + self._growth))

    def choose(self) -> int:
        """The length for the next cycle."""
        if self._cycles % TRIED_EVERY != TRIED_EVERY - 1:
            return self._length
        return self._length + TRIED if self._length + TRIED <= self._longest else max(1, self._length - TRIED)

    def observe(self, drafted: int, checked: int, accepted: int, draft_seconds: float, target_seconds: float) -> None:
        """Record one cycle: tokens that were drafted, those of them that were checked and accepted, seconds."""
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
