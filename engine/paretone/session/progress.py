"""Remaining time of a job."""

from __future__ import annotations

import time
from collections.abc import Callable

HALF_LIFE_SECONDS = 4.0
"""After this time, what was seen counts half."""
MINIMUM_SECONDS = 0.5
MINIMUM_UPDATES = 3


class RemainingTime:
    """Estimates the seconds left from the pace of the last seconds.

    Time and units decay alike, so that the pace is a weighted mean over all that was seen, recent work counting more;
    without enough evidence there is no estimate. What was done before the first update is no evidence: it may stem from
    an earlier session, or include what happens only once. ``clock`` gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._started = self._last = 0.0
        self._done = 0
        self._updates = 0
        self._seconds = 0.0
        self._units = 0.0

    def update(self, done: int, total: int) -> float | None:
        """Seconds left once ``done`` of ``total`` units are done, or ``None`` until that can be estimated."""
        now = self._clock()
        if self._updates == 0:
            self._started = now
        else:
            passed, units = now - self._last, done - self._done
            decay = 0.5 ** (passed / HALF_LIFE_SECONDS)
            self._seconds = self._seconds * decay + passed
            self._units = self._units * decay + units
        self._last, self._done = now, done
        self._updates += 1
        if done >= total:
            return 0.0
        enough = self._updates >= MINIMUM_UPDATES and now - self._started >= MINIMUM_SECONDS
        return (total - done) * self._seconds / self._units if enough and self._units > 0 else None

    @property
    def units_per_second(self) -> float:
        """The pace; 0 before anything is known."""
        return self._units / self._seconds if self._seconds > 0 else 0.0
