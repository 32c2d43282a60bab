"""Optimisers of the bundled models: Muon for the layers' matrices, AdamW for everything else.

Muon is momentum with orthogonalised update matrices: Jordan et al., "Muon: An optimizer for hidden layers in neural
networks" (2024). Newton–Schulz iteration with that paper's quintic coefficients finds the orthogonal factors, for all
matrices of one shape together, which is fast for a stack of equal layers. The iteration tolerates rounding: bfloat16
works as well and is faster on some machines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from paretone.errors import TrainingError

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
    """For a network's inner matrices; train embeddings, biases and output layers with another optimiser."""

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

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One update with Nesterov momentum, scaled so that wide and tall matrices move alike. As in torch's own
        optimisers, ``closure`` computes the gradients and returns the loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
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
        return loss

    def _direction(self, parameter: Tensor, momentum: float) -> Tensor:
        state = self.state[parameter]
        if not state:
            state["average"] = torch.zeros_like(parameter)
        if parameter.grad is None:
            raise ValueError("The parameter has no gradient.")
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
    """Parameters for Muon, by name: matrices whose name contains ``inside`` but not ``apart_from`` (AdaLN's, which
    start at zero)."""

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
