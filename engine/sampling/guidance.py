"""Classifier-free guidance of the flow family."""

from __future__ import annotations

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
