"""An observer for tests: remembers what it was told, and cancels when asked to."""

from __future__ import annotations

import numpy as np

from paretone.errors import Cancelled
from paretone.observer import Observer, StepReport
from paretone.techniques.ditreducio.record import Trial
from paretone.techniques.ditreducio.requests import Similarities


class Recorder(Observer):
    """Remembers every report. With ``cancel_after`` it raises :class:`Cancelled` at that many checks."""

    def __init__(self, cancel_after: int | None = None) -> None:
        self.cancel_after = cancel_after
        self.checks = 0
        self.trials: list[Trial] = []
        self.steps: list[StepReport] = []
        self.statuses: list[str] = []
        self.progressed: list[tuple[int, int]] = []
        self.last_similarities: np.ndarray | None = None

    def check(self) -> None:
        self.checks += 1
        if self.cancel_after is not None and self.checks >= self.cancel_after:
            raise Cancelled

    def step(self, report: StepReport) -> None:
        self.steps.append(report)

    def status(self, text: str) -> None:
        self.statuses.append(text)

    def report(self, name: str, value: object) -> None:
        if isinstance(value, Similarities):
            self.last_similarities = value.values
        elif isinstance(value, Trial):
            self.trials.append(value)

    def progress(self, done: int, total: int) -> None:
        self.progressed.append((done, total))
