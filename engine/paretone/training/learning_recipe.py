"""Common part of recipes around one :class:`paretone.training.learner.Learner`: optimiser steps, averaged weights, and
what a checkpoint holds of them. See :class:`paretone.training.recipe.Recipe`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from paretone.training.learner import Learner
from paretone.training.schedule import AveragedModel, Network


class Scheduled(Protocol):
    """Interface of options that give learning rates over time."""

    @property
    def warm_up(self) -> int: ...

    @property
    def hold(self) -> float: ...

    def scale(self, step: int, progress: float, warm_up: int, hold: float) -> float: ...


Options = TypeVar("Options", bound=Scheduled)


class LearningRecipe(ABC, Generic[Options, Network]):
    """Trains the model of ``learner``."""

    def __init__(self, learner: Learner[Network], device: torch.device, options: Options) -> None:
        self.model, self.device, self.options = learner.model, device, options
        self._learner = learner

    @property
    def average(self) -> AveragedModel[Network]:
        """The weights that are kept."""
        return self._learner.average

    @property
    def steps(self) -> int:
        """Steps made so far."""
        return self._learner.steps

    @abstractmethod
    def next_loss(self, progress: float) -> tuple[Tensor, Mapping[str, Tensor | float]]:
        """The loss to go down, of the next batch at ``progress`` of the budget, and the terms to log, detached."""

    def step(self, number: int, progress: float) -> dict[str, float]:
        options = self.options
        self._learner.start(options.scale(number, progress, options.warm_up, options.hold))
        loss, terms = self.next_loss(progress)
        self._learner.follow(loss, number)
        return {name: float(value) for name, value in terms.items()}

    def state(self) -> dict[str, Any]:
        return self._learner.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._learner.restore(state)
