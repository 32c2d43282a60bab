"""Progress of the steps that fill in a text, by passage and block."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paretone.observer import Observer, StepReport
from paretone.sampling.demasking_schedule import Block


class DemaskingProgress:
    """Tells an observer how far the steps of one passage are."""

    def __init__(self, observer: Observer, planned: Sequence[Sequence[int]], number: int, seconds: float) -> None:
        """``planned`` are the steps that each block of each passage takes at most, ``number`` is the passage that runs,
        and ``seconds`` how long it will be heard."""
        self._observer, self._number, self._passages = observer, number, len(planned)
        self._before, self._total = sum(map(sum, planned[:number])), sum(map(sum, planned))
        self._steps, self._blocks = sum(planned[number]), iter(planned[number])
        self._seconds = seconds
        self._start: int | None = None
        """First frame of the running block."""
        self._done = self._planned = 0
        """Steps of the blocks before the running one, and of this, as they were planned."""

    def tell(self, block: Block, step: int, seconds: float) -> None:
        """A step of ``block`` is done, counted from 0 within it; how many it has may have changed on the way."""
        if block.start != self._start:
            self._done, self._planned, self._start = self._done + self._planned, next(self._blocks, 1), block.start
        # A block may take fewer steps than was planned.
        reached = min(self._done + math.ceil((step + 1) / block.steps * self._planned), self._steps)
        self._observer.step(
            StepReport(
                self._number,
                self._passages,
                reached - 1,
                self._steps,
                seconds,
                self._seconds,
                self._before,
                self._total,
            )
        )
