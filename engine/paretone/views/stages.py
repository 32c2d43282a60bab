"""One progress for work of many parts. Torch-free."""

from __future__ import annotations

from collections.abc import Callable

from paretone.observer import Observer, Passing, StepReport


class Stages:
    """Counts ``total`` units of work, by parts; a unit is best a layer evaluation, or as long as one."""

    def __init__(self, observer: Observer, total: float) -> None:
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


class ProgressStage(Passing):
    """A part of the work. Its own lines are passed over."""

    def __init__(self, observer: Observer, tell: Callable[[float], None]) -> None:
        super().__init__(observer, "caution")
        self._tell = tell

    def step(self, report: StepReport) -> None:
        self.progress(report.chunk * report.steps + report.step + 1, report.chunks * report.steps)

    def progress(self, done: int, total: int) -> None:
        self._tell(done / total)
