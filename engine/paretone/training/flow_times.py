"""The times at which flow models learn and are validated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from paretone.stopping import may_stop

VALIDATION_TIMES = (0.05, 0.40)
"""Close to the noise is where a model that mumbles gives itself away, while its mean loss looks fine."""

Batch = TypeVar("Batch")


def drawn_times(count: int, uniform: float, generator: torch.Generator) -> Tensor:
    """(count,) times spread evenly over the batch, so that every step sees early and late ones; a share of ``uniform``
    is uniform, the others are bent towards the noise as sway sampling bends them."""
    strata = torch.randperm(count, generator=generator)
    times = (strata + torch.rand(count, generator=generator)) / count
    swayed = 1 - torch.cos(math.pi / 2 * times)
    return torch.where(torch.rand(count, generator=generator) < uniform, times, swayed)


def errors_by_time(
    batches: Iterable[Batch], error: Callable[[Batch, float, torch.Generator], Tensor]
) -> dict[str, float]:
    """The mean ``error`` of ``batches`` at each of :data:`VALIDATION_TIMES`, on the same noise every time."""
    figures = {}
    for time in VALIDATION_TIMES:
        generator = torch.Generator().manual_seed(7)
        errors = []
        for batch in batches:
            may_stop()
            errors.append(float(error(batch, time, generator)))
        figures[f"t={time:.2f}"] = float(np.mean(errors))
    return figures
