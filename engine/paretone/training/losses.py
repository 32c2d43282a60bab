"""Losses of a network on a batch of tokens: against the spoken tokens, and against a teacher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Seen:
    """Outputs of a model on a batch, which the terms compare. Layers by their own number."""

    logits: Tensor
    """(n, V) at the positions that predict something."""
    embedded: Tensor
    """(B, T, D) inputs of the first layer."""
    outputs: Mapping[int, Tensor] = field(default_factory=dict)
    """(B, T, D) by layer, before the final norm."""
    attention: Mapping[int, Tensor] = field(default_factory=dict)
    """(B, H, T, T) by layer, after the softmax."""


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of ``logits`` (n, V) to the ids that were really spoken (n,)."""
    return F.cross_entropy(logits.float(), labels)


def divergence(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(p_T ‖ p_S) in nats, mean over positions; logits (n, V)."""
    return each_divergence(student, teacher).mean()


def each_divergence(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(p_T ‖ p_S) in nats of every position (n,); logits (n, V)."""
    wanted, found = teacher.float().log_softmax(-1), student.float().log_softmax(-1)
    return (wanted.exp() * (wanted - found)).sum(-1)
