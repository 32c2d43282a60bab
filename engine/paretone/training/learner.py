"""Training of a model: optimisers, learning rate schedule, weight average, checkpoint state, and the recipes' base
class."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from paretone.training.batches import BatchQueue
from paretone.training.optimisers import LayerMatrices, MuonAndAdamW, Rates
from paretone.training.processes import Processes
from paretone.training.session import require_finite


def learning_rate_scale(step: int, progress: float, warm_up: int, hold: float, floor: float = 0.02) -> float:
    """Linear warm-up over ``warm_up`` steps; full rate until ``hold`` of the budget; then a cosine down to ``floor``.

    ``progress`` is the share of the budget that is spent (0..1), so a budget in minutes is met at any step time.
    """
    rising = min(1.0, step / warm_up) if warm_up else 1.0
    if progress < hold:
        return rising
    falling = 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - hold) / (1 - hold))))
    return rising * (falling * (1 - floor) + floor)


@dataclass(frozen=True, kw_only=True)
class Rated:
    rate_scale: float = 1.0
    """Factor on all learning rates; below 1 for resuming a run whose loss was not finite."""

    def scale(self, step: int, progress: float, warm_up: int, hold: float) -> float:
        """:func:`learning_rate_scale`, times ``rate_scale``."""
        return self.rate_scale * learning_rate_scale(step, progress, warm_up, hold)


Network = TypeVar("Network", bound=nn.Module)


class AveragedModel(Generic[Network]):
    """Exponential moving average of a model's parameters, with its present buffers (running statistics, codebooks). It
    forgets quickly at first and slowly later."""

    def __init__(self, model: Network, decay: float) -> None:
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (20 + step))
        torch._foreach_lerp_(list(self.module.parameters()), list(model.parameters()), 1 - decay)
        for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
            ours.copy_(theirs)


SMALL_PARAMETERS = 20_000_000
"""Smaller models tolerate higher learning rates."""
GRADIENT_NORM = 1.0
"""Gradients are clipped to this norm."""


@dataclass(frozen=True)
class LearningOptions(Rated):
    """Options of recipes with Muon and AdamW."""

    matrix_rate: float | None = 0.02
    """Learning rate of Muon for the layers' matrices; ``None``: AdamW trains them too."""
    other_rate: float = 1.5e-3
    """Learning rate of AdamW for all other parameters."""
    warm_up: int = 100
    hold: float = 0.3
    """Share of the budget after which the learning rates fall."""
    joined_share: float = 0.5
    """Share of items with two recordings of one voice, a prompt and the speech after it."""
    average_decay: float = 0.999
    half_precision: bool = False
    """Forward pass, backward pass and Muon's iteration in bfloat16; weights and their updates in float32."""
    validation_items: int = 24
    seed: int = 1

    @property
    def rates(self) -> Rates:
        return Rates(self.matrix_rate, self.other_rate)

    def autocast(self, device: torch.device) -> torch.autocast:
        return torch.autocast(device.type, torch.bfloat16, enabled=self.half_precision)


Model = TypeVar("Model", bound=nn.Module)


class Learner(Generic[Model]):
    """Trains ``model``. A step is :meth:`start`, a forward pass, :meth:`follow`."""

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
        return cls(model, layers, options.rates, options.average_decay, half_precision=options.half_precision)

    def start(self, scale: float) -> None:
        """Clear the gradients, and set the learning rates to ``scale`` times the full ones."""
        self.optimisers.start(scale)

    def follow(self, loss: Tensor, number: int) -> float:
        """Update the weights in step ``number`` from the gradient of ``loss``; returns the loss as a number.

        Raises :class:`paretone.errors.TrainingError` if the loss or its gradient is not finite.
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
        return nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "average": self.average.module.state_dict(),
            "optimisers": self.optimisers.state(),
            "steps": self.steps,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state`. Raises :class:`paretone.errors.TrainingError` if the optimisers differ."""
        self.model.load_state_dict(state["model"])
        self.average.module.load_state_dict(state["average"])
        self.optimisers.restore(state["optimisers"])
        self.steps = state.get("steps", 0)  # Earlier checkpoints of megatts3-mini lack it.


class Scheduled(Protocol):
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

    _queue: BatchQueue
    """Clips to train on; set by subclasses."""

    @property
    def epochs(self) -> float:
        """How often this process has drawn the training clips."""
        return self._queue.epochs

    @property
    def average(self) -> AveragedModel[Network]:
        """The weights to export."""
        return self._learner.average

    @property
    def steps(self) -> int:
        return self._learner.steps

    @abstractmethod
    def next_loss(self, progress: float) -> tuple[Tensor, Mapping[str, Tensor | float]]:
        """Loss of the next batch at ``progress`` of the budget, and the detached terms to log."""

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


class JoinedLearner(Learner[Model]):
    """Trains with all processes of the run."""

    def __init__(
        self,
        model: Model,
        predict: Callable[..., Tensor],
        layers: LayerMatrices,
        rates: Rates,
        average_decay: float,
        processes: Processes,
    ) -> None:
        """``predict`` is called with the model and the arguments of :attr:`call`. No weight decay for matrices: the
        model is already trained."""
        half = processes.accelerator.mixed_precision == "bf16"
        super().__init__(model, layers, rates, average_decay, 0.0, half)
        self._accelerator, parts = processes.accelerator, self.optimisers.parts
        self.call, *prepared = self._accelerator.prepare(_Called(model, predict), *parts.values())
        """The model in training as a module call, for gradient exchange between processes."""
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
