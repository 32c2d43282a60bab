"""The observer of those who only wait for the result. Torch-free."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from engine.models.base import StepReport


class SilentObserver:
    """Lets everything pass; see :class:`engine.models.base.CalibrationObserver`."""

    def check(self) -> None: ...

    def step(self, report: StepReport) -> None: ...

    def status(self, text: str) -> None: ...

    def trial(self, trial: object) -> None: ...

    def similarities(self, similarities: np.ndarray) -> None: ...

    def progress(self, done: int, total: int) -> None: ...
