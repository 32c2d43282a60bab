"""Observers of those who only wait for the result. Torch-free."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from paretone.models.base import StatusObserver, StepReport, WorkObserver


class SilentObserver:
    """Lets everything pass; see :class:`paretone.models.base.ProgressObserver`."""

    def check(self) -> None: ...

    def step(self, report: StepReport) -> None: ...

    def status(self, text: str) -> None: ...

    def caution(self, sentence: str) -> None: ...

    def trial(self, trial: object) -> None: ...

    def similarities(self, similarities: np.ndarray) -> None: ...

    def progress(self, done: int, total: int) -> None: ...


class QuietObserver(SilentObserver):
    """Passes on ``observer``'s check for cancelling, which every report makes, and what is to be known of a voice."""

    def __init__(self, observer: StatusObserver) -> None:
        self._observer = observer

    def check(self) -> None:
        self._observer.check()

    def step(self, report: StepReport) -> None:
        self.check()

    def status(self, text: str) -> None:
        self.check()

    def caution(self, sentence: str) -> None:
        self.check()
        getattr(self._observer, "caution", lambda said: None)(sentence)

    def trial(self, trial: object) -> None:
        self.check()

    def similarities(self, similarities: np.ndarray) -> None:
        self.check()

    def progress(self, done: int, total: int) -> None:
        self.check()


class ProgressingObserver(QuietObserver):
    """Passes on how far a preparation is as well."""

    def __init__(self, observer: WorkObserver) -> None:
        super().__init__(observer)
        self._following = observer

    def progress(self, done: int, total: int) -> None:
        self._following.progress(done, total)
