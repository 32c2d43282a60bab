"""A learner that is one of many processes, which exchange their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

import torch
from torch import Tensor, nn

from paretone.training.learner import GRADIENT_NORM, Learner, Model
from paretone.training.optimisers import LayerMatrices, Rates
from paretone.training.processes import Processes


class JoinedLearner(Learner[Model]):
    """Learns with all processes of the run."""

    def __init__(
        self,
        model: Model,
        predict: Callable[..., Tensor],
        layers: LayerMatrices,
        rates: Rates,
        average_decay: float,
        processes: Processes,
    ) -> None:
        """``predict`` is called with the model and what :attr:`call` is called with. Matrices do not decay: the model
        is trained already."""
        half = processes.accelerator.mixed_precision == "bf16"
        super().__init__(model, layers, rates, average_decay, 0.0, half)
        self._accelerator, parts = processes.accelerator, self.optimisers.parts
        self.call, *prepared = self._accelerator.prepare(_Called(model, predict), *parts.values())
        """The model in training as one call, which is what several processes exchange their gradients around."""
        parts.update(zip(parts, prepared, strict=True))

    def _backward(self, loss: Tensor) -> None:
        self._accelerator.backward(loss)

    def _shortened(self) -> Tensor:
        return self._accelerator.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)


class _Called(nn.Module, Generic[Model]):
    """``predict`` with the model as a module."""

    def __init__(self, model: Model, predict: Callable[..., Tensor]) -> None:
        super().__init__()
        self.model, self._predict = model, predict

    def forward(self, *given: Any) -> torch.Tensor:
        return self._predict(self.model, *given)
