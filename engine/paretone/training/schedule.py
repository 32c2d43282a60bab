"""Learning rates over time, and the averaged weights that are shipped."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import nn


def learning_rate_scale(step: int, progress: float, warm_up: int, hold: float, floor: float = 0.02) -> float:
    """Linear warm-up over ``warm_up`` steps; full rate until ``hold`` of the budget; then a cosine down to ``floor``.

    ``progress`` is the share of the budget that is spent (0..1), so a budget in minutes is met however long a step
    takes.
    """
    rising = min(1.0, step / warm_up) if warm_up else 1.0
    if progress < hold:
        return rising
    falling = 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - hold) / (1 - hold))))
    return rising * (falling * (1 - floor) + floor)


@dataclass(frozen=True, kw_only=True)
class Rated:
    """Options common to all recipes."""

    rate_scale: float = 1.0
    """All learning rates, times the usual ones: a run whose loss was not finite resumes with less."""

    def scale(self, step: int, progress: float, warm_up: int, hold: float) -> float:
        """:func:`learning_rate_scale`, times that."""
        return self.rate_scale * learning_rate_scale(step, progress, warm_up, hold)


Network = TypeVar("Network", bound=nn.Module)


class AveragedModel(Generic[Network]):
    """Exponential moving average of a model's parameters, with its present buffers (running statistics, codebooks). It
    forgets quickly at first and slowly later on."""

    def __init__(self, model: Network, decay: float) -> None:
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (20 + step))
        torch._foreach_lerp_(list(self.module.parameters()), list(model.parameters()), 1 - decay)
        for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
            ours.copy_(theirs)
