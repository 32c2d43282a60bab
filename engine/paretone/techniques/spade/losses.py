"""The composite loss of SPADE's distillation, term by term (SPADE, section 3.2).

``L = α · CE + (1 − α) / 4 · (L_logit + L_latent + L_attention + L_embedding)`` with α = 0.25.

What the paper leaves open and what is done here: the skewed divergence is the forward one with λ = 0.1, in the
cross-entropy form of DistiLLM (the teacher's entropy is not subtracted: another value, the same gradient); layer
outputs are taken before the final norm, attention after the softmax, both at all positions. Errors of layer outputs can
be taken relative to the teacher's mean square, which the paper does not do: a model whose residual stream grows large
(the bundled one: mean square of 100 to 5,000) would otherwise only learn to follow the largest channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from paretone.training.losses import Seen, cross_entropy

ALPHA = 0.25
SKEW = 0.1


def skewed_divergence(student: Tensor, teacher: Tensor, skew: float = SKEW) -> Tensor:
    """−Σ p_T log(λ p_T + (1 − λ) p_S), mean over positions; logits (n, V). Source: Ko et al., "DistiLLM" (2024)."""
    wanted = teacher.float().softmax(-1)
    mixed = skew * wanted + (1 - skew) * student.float().softmax(-1)
    return -(wanted * mixed.clamp_min(1e-12).log()).sum(-1).mean()


def target_layers(retained: Sequence[int], layers: int) -> tuple[int, ...]:
    """The teacher's layer that each of the student's layers is to match: the one before the next retained layer, so
    that it also learns what all removed layers after it did; the last one matches the teacher's last."""
    return (*(following - 1 for following in retained[1:]), layers - 1)


def latent_loss(
    student: Seen, teacher: Seen, targets: Sequence[int], heard: Tensor | None = None, relative: bool = False
) -> Tensor:
    """Mean squared error of layer outputs, mean over layers. ``heard`` (B, T) leaves padding out; ``relative`` divides
    by the mean square of the teacher's."""
    errors = []
    for layer, target in enumerate(targets):
        wanted = teacher.outputs[target]
        error = _squared_error(student.outputs[layer], wanted, heard)
        errors.append(error / wanted.float().square().mean() if relative else error)
    return torch.stack(errors).mean()


def attention_loss(student: Seen, teacher: Seen, targets: Sequence[int]) -> Tensor:
    """Mean squared error of attention after the softmax, all T · T entries, mean over layers."""
    pairs = ((student.attention[layer], teacher.attention[target]) for layer, target in enumerate(targets))
    return torch.stack([_squared_error(found, wanted, None) for found, wanted in pairs]).mean()


def embedding_loss(student: Seen, teacher: Seen, heard: Tensor | None = None) -> Tensor:
    """Mean squared error of the input embeddings: zero at first, so it only is an anchor."""
    return _squared_error(student.embedded, teacher.embedded, heard)


def _squared_error(found: Tensor, wanted: Tensor, heard: Tensor | None) -> Tensor:
    squares = (found.float() - wanted.float()).square()
    return squares.mean() if heard is None else squares[heard].mean()


@dataclass(frozen=True)
class Terms:
    """The five terms of one batch."""

    cross_entropy: Tensor
    logits: Tensor
    latent: Tensor
    attention: Tensor
    embedding: Tensor

    def total(self, alpha: float = ALPHA) -> Tensor:
        """Their weighted sum."""
        distilled = self.logits + self.latent + self.attention + self.embedding
        return alpha * self.cross_entropy + (1 - alpha) / 4 * distilled

    def named(self) -> dict[str, float]:
        """Values for a log."""
        return {name: float(value.detach()) for name, value in vars(self).items()}


def composite_loss(
    student: Seen,
    teacher: Seen,
    labels: Tensor,
    targets: Sequence[int],
    heard: Tensor | None = None,
    relative: bool = False,
) -> Terms:
    """All terms. ``labels`` (n,) are the ids spoken at the positions of the logits, ``targets`` comes from
    :func:`target_layers`, ``heard`` (B, T) is false in padding, ``relative`` is as in :func:`latent_loss`. Where
    attention was not looked at, its term is zero."""
    return Terms(
        cross_entropy(student.logits, labels),
        skewed_divergence(student.logits, teacher.logits),
        latent_loss(student, teacher, targets, heard, relative),
        attention_loss(student, teacher, targets) if student.attention else torch.zeros(()),
        embedding_loss(student, teacher, heard),
    )
