"""Progress of the tokens of a text, reported at intervals."""

from __future__ import annotations

import time
from collections.abc import Sequence

from paretone.observer import Observer, StepReport
from paretone.sampling.autoregressive import Cycle

REPORT_SECONDS = 0.05
"""Least time between reports: tokens come faster than anybody can read."""


class TokenProgress:
    """Tells an observer how far the tokens of one passage are."""

    def __init__(
        self, observer: Observer, expected: Sequence[int], number: int, tokens_before: int, token_rate: float
    ) -> None:
        """``expected`` are the tokens that each passage should take, ``number`` is the passage that runs, and
        ``tokens_before`` what the ones before it really took; ``token_rate`` tokens make a second."""
        self._observer, self._rate = observer, token_rate
        self._number, self._passages, self._expected = number, len(expected), expected[number]
        self._before, self._total = sum(expected[:number]), sum(expected)
        self._tokens_before, self._tokens = tokens_before, 0
        self._last = -REPORT_SECONDS

    def tell(self, cycle: Cycle) -> None:
        """A cycle is done."""
        self._tokens += len(cycle.tokens)
        now = time.perf_counter()
        if now - self._last < REPORT_SECONDS and not cycle.stopped:
            return
        self._last = now
        # Speech that takes longer than expected is about to end all the time; an end may come before it was expected.
        reached = self._expected if cycle.stopped else min(max(self._tokens, 1), self._expected)
        self._observer.step(
            StepReport(
                self._number,
                self._passages,
                reached - 1,
                self._expected,
                cycle.draft_seconds + cycle.target_seconds,
                self._expected / self._rate,
                self._before,
                self._total,
                self._tokens_before + self._tokens,
            )
        )
