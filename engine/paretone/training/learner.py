"""A model that learns: its optimisers, its averaged copy, and what a checkpoint holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from paretone.training.optimisers import LayerMatrices, MuonAndAdamW, Rates
from paretone.training.recipe import require_finite
from paretone.training.schedule import AveragedModel, Rated

SMALL_PARAMETERS = 20_000_000
"""Models with fewer bear higher learning rates."""
GRADIENT_NORM = 1.0
"""Longer gradients are shortened to this."""


@dataclass(frozen=True)
class LearningOptions(Rated):
    """Options of recipes with Muon and AdamW."""

    matrix_rate: float | None = 0.02
    """Learning rate of Muon, for the matrices of the layers; ``None``: AdamW moves them too."""
    other_rate: float = 1.5e-3
    """Learning rate of AdamW, for everything else."""
    warm_up: int = 100
    """Steps in which the learning rates rise."""
    hold: float = 0.3
    """Share of the budget after which they fall."""
    joined_share: float = 0.5
    """Share of the items that are two recordings of one voice: a prompt and what is said after it."""
    average_decay: float = 0.999
    half_precision: bool = False
    """Forward pass, backward pass and Muon's iteration in bfloat16; weights and their updates stay in float32."""
    validation_items: int = 24
    seed: int = 1

    @property
    def rates(self) -> Rates:
        """Learning rates of both optimisers."""
        return Rates(self.matrix_rate, self.other_rate)

    def autocast(self, device: torch.device) -> torch.autocast:
        """The precision of passes on ``device``."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self.half_precision)


Model = TypeVar("Model", bound=nn.Module)


class Learner(Generic[Model]):
    """Moves ``model`` step by step. Every step is :meth:`start`, a pass forwards, :meth:`follow`."""

    def __init__(
        self,
        model: Model,
        layers: LayerMatrices,
        rates: Rates,
        average_decay: float,
        matrix_decay: float = 0.01,
        half_precision: bool = False,
    ) -> None:
        """See :class:`MuonAndAdamW` and :class:`AveragedModel`."""
        self.model = model
        self.average = AveragedModel(model, average_decay)
        self.optimisers = MuonAndAdamW(model, layers, rates, matrix_decay, half_precision)
        self.steps = 0

    @classmethod
    def by(cls, model: Model, layers: LayerMatrices, options: LearningOptions) -> Learner[Model]:
        """The learner that ``options`` ask for."""
        return cls(model, layers, options.rates, options.average_decay, half_precision=options.half_precision)

    def start(self, scale: float) -> None:
        """Drop the last step's gradients, and learn at ``scale`` times the full rates."""
        self.optimisers.start(scale)

    def follow(self, loss: Tensor, number: int) -> float:
        """Move the weights down the gradient of ``loss`` in step ``number``; the loss as a number.

        Raises :class:`paretone.errors.TrainingError` if it, or its gradient, is not finite.
        """
        self._backward(loss)
        norm = self._shortened()
        value = float(loss.detach())
        require_finite(float(value + norm), "loss or its gradient", number)
        self.optimisers.step()
        self.average.update(self.model, number)
        self.steps = number
        return value

    def _backward(self, loss: Tensor) -> None:
        loss.backward()

    def _shortened(self) -> Tensor:
        """Shorten the gradient to :data:`GRADIENT_NORM`; its length before."""
        return nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "model": self.model.state_dict(),
            "average": self.average.module.state_dict(),
            "optimisers": self.optimisers.state(),
            "steps": self.steps,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state`. Raises :class:`paretone.errors.TrainingError` when it is of other optimisers."""
        self.model.load_state_dict(state["model"])
        self.average.module.load_state_dict(state["average"])
        self.optimisers.restore(state["optimisers"])
        self.steps = state.get("steps", 0)  # Earlier checkpoints of megatts3-mini lack it.
