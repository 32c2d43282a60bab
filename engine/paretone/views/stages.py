"""One progress for work of many parts. Torch-free."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paretone.models.base import ProgressObserver, StepReport, caution


class Stages:
    """Counts ``total`` units of work, by parts; a unit is best a layer evaluation, or as long as one."""

    def __init__(self, observer: ProgressObserver, total: float) -> None:
        self._observer = observer
        self._total = max(1, round(total))
        self._begun = 0.0

    def check(self) -> None:
        """A chance to stop."""
        self._observer.check()

    def done(self, units: float) -> None:
        """Report finished work."""
        self._begun += units
        self._tell(self._begun)

    def part(self, units: float, text: str) -> ProgressStage:
        """The next part: an observer of what does it; the part counts as done when the next one begins."""
        self._observer.status(text)
        begun, self._begun = self._begun, self._begun + units
        return ProgressStage(self._observer, lambda share: self._tell(begun + share * units))

    def _tell(self, units: float) -> None:
        self._observer.check()
        self._observer.progress(min(round(units), self._total), self._total)


class ProgressStage:
    """A part of the work; see :class:`paretone.models.base.ProgressObserver`. Its own lines are passed over."""

    def __init__(self, observer: ProgressObserver, tell: Callable[[float], None]) -> None:
        self._observer = observer
        self._tell = tell

    def check(self) -> None:
        """A chance to stop."""
        self._observer.check()

    def status(self, text: str) -> None:
        """A chance to stop."""
        self._observer.check()

    def caution(self, sentence: str) -> None:
        """Pass it on."""
        caution(self._observer, sentence)

    def step(self, report: StepReport) -> None:
        """Tell how far a sampling loop is."""
        self.progress(report.chunk * report.steps + report.step + 1, report.chunks * report.steps)

    def progress(self, done: int, total: int) -> None:
        """Report how far the part is, in its own units."""
        self._tell(done / total)

    def trial(self, trial: object) -> None:
        """A chance to stop."""
        self._observer.check()

    def similarities(self, similarities: np.ndarray) -> None:
        """A chance to stop."""
        self._observer.check()
