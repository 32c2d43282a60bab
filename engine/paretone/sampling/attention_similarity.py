"""Diagonal similarity of attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def diagonal_similarity(query: Tensor, key: Tensor, block: int = 256) -> float:
    """Cosine similarity between the attention map softmax(q kᵀ / √width) and the identity, mean over the items.

    ``query`` and ``key`` are (items, frames, width), unsplit and unrotated as in the official code. The map is formed
    ``block`` rows at a time, so memory grows with the frames, not with their square.
    """
    frames, width = query.shape[-2:]
    on_diagonal = query.new_zeros(len(query), dtype=torch.float64)
    squares = torch.zeros_like(on_diagonal)
    for start in range(0, frames, block):
        rows = query[:, start : start + block] / math.sqrt(width)
        attention = (rows @ key.transpose(1, 2)).softmax(dim=-1)
        on_diagonal += attention.diagonal(offset=start, dim1=1, dim2=2).sum(dim=-1, dtype=torch.float64)
        squares += attention.square().sum(dim=(1, 2), dtype=torch.float64)
    return (on_diagonal / (squares.sqrt() * math.sqrt(frames))).mean().item()
