"""Training of a model: optimisers, learning rate, weight average, checkpoint state, and the recipes' base class."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from paretone.errors import TrainingError
from paretone.training.batches import BatchQueue
from paretone.training.processes import Processes
from paretone.training.session import require_finite

ITERATIONS = 4
_LINEAR, _CUBIC, _QUINTIC = 3.4445, -4.7750, 2.0315


def orthogonalised(matrices: Tensor) -> Tensor:
    """Nearest matrices (n, rows, columns) with singular values of about one; requires rows ≤ columns."""
    result = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = result @ result.mT
        result = torch.baddbmm(
            result, torch.baddbmm(gram, gram, gram, beta=_CUBIC, alpha=_QUINTIC), result, beta=_LINEAR
        )
    return result


class Muon(Optimizer):
    """For a network's inner matrices; train embeddings, biases and output layers with another optimiser.

    Momentum with orthogonalised updates: Jordan et al., "Muon: An optimizer for hidden layers in neural networks"
    (2024). Matrices of one shape are orthogonalised together, which is fast for a stack of equal layers.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        iteration_type: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._iteration_type = iteration_type
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(f"Muon optimises matrices, not a tensor of shape {tuple(parameter.shape)}")

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update with Nesterov momentum, scaled so that wide and tall matrices move alike."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for (rows, columns), parameters in by_shape.items():
                directions = torch.stack([self._direction(one, group["momentum"]) for one in parameters])
                directions = directions.to(self._iteration_type)
                updates = orthogonalised(directions) if rows <= columns else orthogonalised(directions.mT).mT
                torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
                scale = -group["lr"] * max(1.0, rows / columns) ** 0.5
                torch._foreach_add_(parameters, list(updates.float().unbind()), alpha=scale)

    def _direction(self, parameter: Tensor, momentum: float) -> Tensor:
        state = self.state[parameter]
        if not state:
            state["average"] = torch.zeros_like(parameter)
        assert parameter.grad is not None
        state["average"].lerp_(parameter.grad, 1 - momentum)
        return parameter.grad.lerp(state["average"], momentum)


MATRICES, OTHERS = "matrices", "others"
"""Names of the two optimisers in checkpoints, in step order."""


@dataclass(frozen=True)
class Rates:
    matrices: float | None
    """Muon's learning rate; ``None``: AdamW trains everything."""
    others: float
    """AdamW's learning rate."""

    def unless_asked(self, others: float | None, matrices: float | None) -> Rates:
        """These, unless others are given; AdamW's rate alone means AdamW for everything."""
        if others is None and matrices is None:
            return self
        return Rates(matrices, self.others if others is None else others)


@dataclass(frozen=True)
class LayerMatrices:
    """Parameters for Muon, by name: matrices named ``inside`` but not ``apart_from`` (AdaLN's, which start at zero)."""

    inside: str
    apart_from: str | None = None

    def split(self, model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Trained parameters: these, and all others."""
        matrices: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                chosen = self.inside in name and not (self.apart_from and self.apart_from in name)
                (matrices if chosen and parameter.ndim == 2 else others).append(parameter)
        return matrices, others


class MuonAndAdamW:
    """Both optimisers. ``parts``: the optimisers by name; :data:`MATRICES` is present only if Muon has a rate."""

    def __init__(
        self,
        model: nn.Module,
        layers: LayerMatrices,
        rates: Rates,
        matrix_decay: float = 0.01,
        half_precision: bool = False,
    ) -> None:
        """``matrix_decay``: weight decay, of the matrices only. ``half_precision``: Muon's iteration in bfloat16;
        weights and their updates keep their type."""
        matrices, others = layers.split(model)
        self.parts: dict[str, Optimizer] = {}
        self._rates = {OTHERS: rates.others}
        if rates.matrices is None:
            others = [one for one in model.parameters() if one.requires_grad]
        else:
            self._rates[MATRICES] = rates.matrices
            self.parts[MATRICES] = Muon(
                matrices,
                lr=rates.matrices,
                weight_decay=matrix_decay,
                iteration_type=torch.bfloat16 if half_precision else torch.float32,
            )
        self.parts[OTHERS] = AdamW(others, lr=rates.others, betas=(0.9, 0.98), weight_decay=0.0, fused=True)

    def start(self, scale: float) -> None:
        """Clear the gradients, and set the learning rates to ``scale`` times the full ones."""
        for name, optimiser in self.parts.items():
            optimiser.param_groups[0]["lr"] = self._rates[name] * scale
            optimiser.zero_grad(set_to_none=True)

    def step(self) -> None:
        for optimiser in self.parts.values():
            optimiser.step()

    def state(self) -> dict[str, Any]:
        """The optimisers' states by name, for a checkpoint."""
        return {name: optimiser.state_dict() for name, optimiser in self.parts.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state`. Raises :class:`TrainingError` if the optimisers differ."""
        if set(state) != set(self.parts):
            raise TrainingError("The run to resume was trained with other optimisers; give the same rates.")
        for name, optimiser in self.parts.items():
            optimiser.load_state_dict(state[name])


FLOOR = 0.02
"""Final learning rates over the full ones."""


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """Learning rates over a run."""

    warm_up: int
    """Steps over which they rise."""
    hold: float
    """Share of the budget after which they fall."""
    rate_scale: float = 1.0
    """Factor on all; below 1 for resuming a run whose loss was not finite."""

    def scale(self, step: int, progress: float) -> float:
        """Factor on the rates: a linear rise, full rates, then a cosine down to :data:`FLOOR`. ``progress`` is the
        spent share of the budget (0..1), so a budget in minutes is met at any step time."""
        rising = min(1.0, step / self.warm_up) if self.warm_up else 1.0
        if progress < self.hold:
            return self.rate_scale * rising
        falling = 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - self.hold) / (1 - self.hold))))
        return self.rate_scale * (rising * (falling * (1 - FLOOR) + FLOOR))


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
class LearningOptions(Scheduled):
    """Options of recipes with Muon and AdamW."""

    matrix_rate: float | None = 0.02
    """Learning rate of Muon for the layers' matrices; ``None``: AdamW trains them too."""
    other_rate: float = 1.5e-3
    """Learning rate of AdamW for all other parameters."""
    warm_up: int = 100
    hold: float = 0.3
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
    """Trains ``model``. A step is :meth:`MuonAndAdamW.start`, a forward pass, :meth:`follow`."""

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

    def follow(self, loss: Tensor, number: int) -> float:
        """Update the weights in step ``number`` from the gradient of ``loss``; returns the loss as a number. Raises
        :class:`paretone.errors.TrainingError` if the loss or its gradient is not finite."""
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
        self._learner.optimisers.start(self.options.scale(number, progress))
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
        """``predict`` gets the model and the arguments of :attr:`call`. No weight decay: the model is trained."""
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
