"""How many tokens to draft at a time, found while decoding. Torch-free."""

from __future__ import annotations

from collections import deque
from statistics import linear_regression, median

from engine.techniques.speculative.planner import expected_tokens

LONGEST = 8
MEMORY = 15
"""How many cycles the times are the median of: one that the system interrupted does not count."""
FORGETTING = 0.97
"""What an acceptance counts for a cycle later."""
TRIALS = 6
"""Cycles of two lengths in turn, at first, which show what one more token adds to a target pass."""


class AdaptiveLength:
    """The draft length that gives most tokens per second, by what the last cycles accepted and took; ``start`` is where
    it begins.

    Expected tokens of a cycle of length K are (1 − α^(K+1)) / (1 − α), its time is K draft passes and a target pass
    over K + 1 tokens. Of equal measurements come equal lengths; the distribution of the tokens does not depend on them.
    """

    def __init__(self, start: int = 3, longest: int = LONGEST) -> None:
        if not 1 <= start <= longest:
            raise ValueError(f"A draft length of {start} is not from 1 to {longest}.")
        self._longest = longest
        other = start + 2 if start + 2 <= longest else max(1, start - 2)
        self._trials = [other, start] * (TRIALS // 2)
        self._length = self._trials.pop()
        # As if half of a few had been accepted.
        self._accepted, self._checked = 2.0, 4.0
        self._draft: deque[float] = deque(maxlen=MEMORY)
        self._target: dict[int, deque[float]] = {}

    @property
    def acceptance(self) -> float:
        """α: the share of checked tokens that are accepted."""
        return self._accepted / self._checked

    @property
    def cost_ratio(self) -> float | None:
        """c: a draft pass over a target pass for one token; ``None`` before anything was measured."""
        return median(self._draft) / self._target_seconds(1) if self._draft and self._target else None

    def choose(self) -> int:
        """The length for the next cycle."""
        return self._length

    def observe(self, drafted: int, checked: int, accepted: int, draft_seconds: float, target_seconds: float) -> None:
        """Take in one cycle: tokens that were drafted, those of them that were checked and accepted, seconds."""
        if not drafted:
            return
        self._accepted = self._accepted * FORGETTING + accepted
        self._checked = self._checked * FORGETTING + checked
        self._draft.append(draft_seconds / drafted)
        self._target.setdefault(drafted + 1, deque(maxlen=MEMORY)).append(target_seconds)
        if self._trials:
            self._length = self._trials.pop()
            return
        draft = median(self._draft)

        def pace(length: int) -> float:
            return expected_tokens(self.acceptance, length) / (length * draft + self._target_seconds(length + 1))

        self._length = max(range(1, self._longest + 1), key=pace)

    def _target_seconds(self, rows: int) -> float:
        """What a target pass over ``rows`` tokens takes: on a line through the medians of those that were measured."""
        known = {count: median(times) for count, times in self._target.items()}
        if len(known) == 1:
            return next(iter(known.values()))
        slope, base = linear_regression(list(known), list(known.values()))
        # No pass over more tokens is faster, and none takes no time.
        return base + slope * rows if base > 0 and slope > 0 else median(known.values())
