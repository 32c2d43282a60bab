"""Time embedding of a network that gives the average velocity over an interval of time.

Such a network is a diffusion transformer of its family with one more perceptron: what that makes of the interval's
length r − t is added to the vector of its start t. The perceptron is built as the official one of the time and is zero
at first, so that the network starts as the one whose weights it has (arXiv 2510.07979).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.models.networks.layers import TimeEmbedding, sinusoids


class IntervalEmbedding(TimeEmbedding):
    """Intervals (n, 2), each from t to r, to vectors (n, width); times (n,) are intervals without length."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.interval_mlp = nn.Sequential(nn.Linear(self.sinusoid_width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, times: Tensor) -> Tensor:
        starts, ends = times.unbind(-1) if times.ndim == 2 else (times, times)
        lengths = sinusoids(1000 * (ends - starts), self.sinusoid_width).to(starts.dtype)
        return super().forward(starts) + self.interval_mlp(lengths)

    def of_schedule(self, times: Tensor) -> Tensor:
        # Each evaluation carries to the time of the next, the last one to speech.
        return self(torch.stack([times, torch.cat([times[1:], times.new_ones(1)])], dim=-1))


def add_interval(backbone: DiffusionTransformer) -> None:
    """Let ``backbone`` take intervals, without effect until the new perceptron has learnt."""
    own = backbone.time_embedding
    name = next(name for name, child in backbone.named_children() if child is own)
    first = own.time_mlp[0]
    assert isinstance(first, nn.Linear)
    embedding = IntervalEmbedding(first.out_features).to(first.weight.device, first.weight.dtype)
    embedding.time_mlp = own.time_mlp
    last = embedding.interval_mlp[2]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    setattr(backbone, name, embedding)
