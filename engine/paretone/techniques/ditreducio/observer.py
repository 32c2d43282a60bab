"""Observers of a calibration. Torch-free."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from paretone.models.base import ProgressObserver
from paretone.techniques.ditreducio.record import Trial


class CalibrationObserver(ProgressObserver, Protocol):
    """Observer of the results of a calibration. Its units are layer evaluations."""

    def trial(self, trial: Trial) -> None:
        """Called after every layer trial."""

    def similarities(self, similarities: np.ndarray) -> None:
        """Called after every step of the check phase with (layers, steps), NaN where not yet measured."""
