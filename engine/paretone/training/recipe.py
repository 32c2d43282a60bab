"""What a training is made of: steps, validation, state, export. :mod:`paretone.training.session` runs it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch

from paretone.errors import TrainingError


class Diverged(TrainingError):
    """A loss, a gradient or a weight is no longer a number."""


class Recipe(Protocol):
    """A training run of one model."""

    @property
    def device(self) -> torch.device: ...

    @property
    def name(self) -> str:
        """Name in the log and in checkpoints."""

    def describe(self) -> dict[str, Any]:
        """Description of the run for the log's header: data, sizes, weights of the losses. JSON."""

    def step(self, number: int, progress: float) -> dict[str, float]:
        """Optimiser step ``number`` (from 1) at ``progress`` of the budget; losses by name. Raises :class:`Diverged`
        before it changes a weight when a loss or a gradient is not finite."""

    def validate(self) -> dict[str, float]:
        """Figures on held-out clips with the averaged weights. The same every time for the same weights."""

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on: weights, averages, optimisers, random generators."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what :meth:`state` gave."""

    def export(self, folder: Path) -> None:
        """Write the averaged weights in the layout in which the model ships."""


def require_finite(value: float, what: str, number: int) -> float:
    """``value``, or :class:`Diverged` that says what was not finite at which step."""
    if not math.isfinite(value):
        raise Diverged(
            f"Training stopped at step {number}: the {what} is {value}. The last good checkpoint is kept; "
            "resume from it with lower learning rates."
        )
    return value
