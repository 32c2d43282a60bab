"""Classifier-free guidance of the flow family, with one condition (F5) and with two (MegaTTS 3). Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine.setting.knobs import Values

if TYPE_CHECKING:
    from torch import Tensor

SMALLEST_GUIDANCE = 1e-5
"""Below this strength the official code runs the conditional branch only (``CFM.sample``)."""


def is_guided(strength: float) -> bool:
    """Whether ``strength`` needs the unconditional branch at all."""
    return strength >= SMALLEST_GUIDANCE


def guided_velocity(branches: Tensor, strength: float) -> Tensor:
    """Combine the velocities of the branches: v_c + strength * (v_c - v_u).

    ``branches`` is (2·batch, frames, bands), conditional rows first, or (batch, frames, bands) without guidance. The
    usual guidance weight w (1: no guidance) is ``1 + strength``.
    """
    if not is_guided(strength):
        return branches
    conditional, unconditional = branches.chunk(2)
    return conditional + (conditional - unconditional) * strength


def branch_weights(intelligibility: float, similarity: float) -> tuple[float, float, float]:
    """Weights of the velocities of MegaTTS 3's three branches: prompt and text, text alone, neither. They add up to
    one.

    The official form, with p for intelligibility and t for similarity (Jiang et al., arXiv 2502.18924), is
    v₂ + p·(v₁ − v₂) + t·(v₀ − v₁).
    """
    return similarity, intelligibility - similarity, 1 - intelligibility


def needed_branches(intelligibility: float, similarity: float) -> tuple[int, ...]:
    """The branches that count at all: the first alone where both are 1, all three as a rule."""
    return tuple(branch for branch, weight in enumerate(branch_weights(intelligibility, similarity)) if weight)


def three_branch_velocity(branches: Tensor, intelligibility: float, similarity: float) -> Tensor:
    """Combine the velocities of the needed branches, (branches·batch, frames, bands), branch-major."""
    weights = [weight for weight in branch_weights(intelligibility, similarity) if weight]
    first, *others = branches.chunk(len(weights))
    velocity = first if weights[0] == 1 else weights[0] * first
    for weight, other in zip(weights[1:], others, strict=True):
        velocity = velocity + weight * other
    return velocity


class Guidance(Protocol):
    """Guidance of a model by its sampler options."""

    def branches(self, options: Values) -> int:
        """Number of branches that run under ``options``."""

    def off(self, options: Values) -> Values:
        """``options`` with the fully conditioned branch alone."""


@dataclass(frozen=True)
class StrengthGuidance:
    """One strength over the unconditional branch: F5-TTS, masked models."""

    def branches(self, options: Values) -> int:
        """Two, or one without guidance."""
        return 2 if is_guided(options["guidance"]) else 1

    def off(self, options: Values) -> Values:
        """A strength of 0."""
        return options.replace(guidance=0.0)


STRENGTH = StrengthGuidance()


@dataclass(frozen=True)
class TwoWeightGuidance:
    """A weight for the text and one for the voice: MegaTTS 3."""

    def branches(self, options: Values) -> int:
        """Three, or fewer where a weight is 1."""
        return len(needed_branches(options["intelligibility"], options["similarity"]))

    def off(self, options: Values) -> Values:
        """Both weights 1."""
        return options.replace(intelligibility=1.0, similarity=1.0)
