"""Target of a calibration: one sentence, with the backbone ready to speak it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from paretone.sampling.flow import Evaluated, Layered, Probe
from paretone.sampling.skipping import LayerMemory, LayerPlan
from paretone.setting.compatibility import Compatibility


class Backbone(Evaluated, Layered, Protocol):
    """Interface of backbones for calibration; ``run`` is the result of their own ``begin``."""

    def evaluate(
        self,
        x: Tensor,
        evaluation: int,
        run: Any,
        plans: Sequence[LayerPlan] | None = None,
        memory: Sequence[LayerMemory] | None = None,
        probe: Probe | None = None,
    ) -> Tensor: ...

    def attention_map_inputs(self, index: int, attention_input: Tensor) -> tuple[Tensor, Tensor]: ...

    def heads(self, index: int) -> int: ...


@dataclass(frozen=True)
class CalibrationTarget:
    """A backbone that has begun one sentence."""

    backbone: Backbone
    run: Any
    """Result of the backbone's ``begin`` for the sentence."""
    noise: Tensor
    """(items, frames, bands)"""
    times: np.ndarray
    guide: Callable[[Tensor], Tensor]
    """Maps the output of the backbone's ``leave`` for all branches, branch-major, to the velocity for the sampler."""
    follow: Callable[[Tensor, Tensor, int], Tensor]
    """The sampler's step: from a state, a velocity and the step's number to the next state. Equal arguments always give
    equal states: a stochastic sampler replays its noise."""
    branches: int
    compatibility: Compatibility
    prompt_frames: int = 0
    """Frames in front of the new speech, computed like the others and counted in the error as in the official code."""

    @property
    def steps(self) -> int:
        return len(self.times) - 1


def diagonal_similarity(query: Tensor, key: Tensor, block: int = 256, width: int = 0) -> float:
    """Cosine similarity between the attention map softmax(q kᵀ / √width) and the identity, mean over the items.
    ``query`` and ``key`` are (items, frames, width), unsplit and unrotated as in the official code; ``width`` replaces
    theirs in the scale if given. The map is formed ``block`` rows at a time, so memory grows with the frames alone."""
    frames, width = query.shape[-2], width or query.shape[-1]
    on_diagonal = query.new_zeros(len(query), dtype=torch.float64)
    squares = torch.zeros_like(on_diagonal)
    for start in range(0, frames, block):
        rows = query[:, start : start + block] / math.sqrt(width)
        attention = (rows @ key.transpose(1, 2)).softmax(dim=-1)
        on_diagonal += attention.diagonal(offset=start, dim1=1, dim2=2).sum(dim=-1, dtype=torch.float64)
        squares += attention.square().sum(dim=(1, 2), dtype=torch.float64)
    return (on_diagonal / (squares.sqrt() * math.sqrt(frames))).mean().item()
