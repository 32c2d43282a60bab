"""DiTReducio's error: how far a skip moves the backbone's output."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def mean_absolute_error(output: Tensor, changed: Tensor) -> float:
    """The paper's error, equation 3."""
    return (output - changed).abs().mean().item()


def relative_error(output: Tensor, changed: Tensor) -> float:
    """The official code's error: each difference over the *signed* larger value, its magnitude clipped at 10."""
    quotient = (output - changed) / (torch.maximum(output, changed) + 1e-6)
    return quotient.abs().clamp(max=10).mean().item()


ERRORS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "mae": mean_absolute_error,
    "relative": relative_error,
}
