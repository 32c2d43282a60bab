"""A random transformer in the middle of a sampling run, and states for its evaluations."""

import torch
from torch import Tensor

from paretone.sampling.flow import sampling_grid
from tests.engine.models.f5.plain_dit import small_dit

STEPS, FRAMES, LAYERS = 4, 11, 4
DIT = small_dit(depth=LAYERS)


def begun(guided: bool = True):
    prompt = torch.randn(1, FRAMES, 20, generator=torch.Generator().manual_seed(0))
    return DIT.begin(prompt, torch.tensor([[1, 2, 3]]), sampling_grid(STEPS, "uniform")[:-1], guided)


def states() -> list[Tensor]:
    """States that hardly differ at the second, and much at the third."""
    first, other = torch.randn(2, 1, FRAMES, 20, generator=torch.Generator().manual_seed(1))
    return [first, first + 0.01 * other, first + 5 * other, first + 5.01 * other]
