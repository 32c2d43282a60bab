"""Muon: momentum whose update matrices are made orthogonal.

Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024). Orthogonal factors are found by
Newton–Schulz iteration with the quintic coefficients given there, for all matrices of one shape together, which is fast
for a stack of equal layers. The iteration tolerates rounding, so bfloat16 works as well and is faster on some machines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import overload

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

ITERATIONS = 4
_LINEAR, _CUBIC, _QUINTIC = 3.4445, -4.7750, 2.0315


def orthogonalised(matrices: Tensor) -> Tensor:
    """The nearest matrices (n, rows, columns) whose singular values all are about one; rows must not exceed columns."""
    result = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = result @ result.mT
        result = torch.baddbmm(
            result, torch.baddbmm(gram, gram, gram, beta=_CUBIC, alpha=_QUINTIC), result, beta=_LINEAR
        )
    return result


class Muon(Optimizer):
    """For the inner matrices of a network; embeddings, biases and output layers belong to another optimiser."""

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
        """One update with Nesterov momentum, scaled so that wide and tall matrices move alike. As with torch's own
        optimisers, ``closure`` computes the gradients anew and returns the loss."""
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
