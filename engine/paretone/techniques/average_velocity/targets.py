"""Targets of an average velocity u(z, t, r), which carries a state from t to r ≥ t: z_r = z_t + (r − t)·u."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
from torch import Tensor

from paretone.training.flow_subjects import Field


def displacement(velocity: Field, state: Tensor, times: Tensor) -> Tensor:
    """(z_r − z_t)/(r − t), (B, frames, bands): displacement of ``state`` under ``velocity`` per unit of time, by Euler
    steps along ``times`` (steps + 1, B) from t to r > t.

    Second-order steps (Adams–Bashforth, DPM-Solver++) are less accurate than Euler's on the bundled F5: eight of them
    give three times its squared distance to 40.
    """
    moving = state
    for start, end in itertools.pairwise(times):
        moving = moving + (end - start)[:, None, None] * velocity(moving, start)
    return (moving - state) / (times[-1] - times[0])[:, None, None]


def mean_flow(average: Field, velocity: Tensor, state: Tensor, intervals: Tensor) -> tuple[Tensor, Tensor]:
    """MeanFlow's prediction and target (Geng et al., arXiv 2505.13447), each (B, frames, bands).

    The definition (r − t)·u = ∫ v dτ, differentiated along the path from t on, says u = v + (r − t)·du/dt. The
    derivative is that of ``average`` along the ``velocity`` of the path at ``state``, by one Jacobian-vector product;
    the target is detached, the prediction is not.
    """
    starts, ends = intervals.unbind(-1)

    def along(moving: Tensor, times: Tensor) -> Tensor:
        return average(moving, torch.stack([times, ends], dim=-1))

    predicted, change = torch.func.jvp(along, (state, starts), (velocity, torch.ones_like(starts)))
    target = velocity + (ends - starts)[:, None, None] * change
    return predicted, target.detach()


Target = TypeVar("Target")


@dataclass
class _Kept(Generic[Target]):
    target: Target
    left: int
    """Remaining uses."""


@dataclass
class TargetsInUse(Generic[Target]):
    """Returns each target ``uses`` times, interleaved with others.

    Targets are not in checkpoints: a resumed run begins with new ones.
    """

    uses: int
    generator: torch.Generator
    most: int = 32
    """Most targets kept at a time."""
    _kept: list[_Kept[Target]] = field(default_factory=list)

    def next(self, work_out: Callable[[], Target]) -> Target:
        """Next target: a new one from ``work_out`` while few are kept, then one of those."""
        if self.uses == 1:
            return work_out()
        if len(self._kept) < self.most:
            self._kept.append(_Kept(work_out(), self.uses - 1))
            return self._kept[-1].target
        number = int(torch.randint(len(self._kept), (), generator=self.generator))
        chosen = self._kept[number]
        chosen.left -= 1
        if not chosen.left:
            self._kept[number] = self._kept[-1]
            self._kept.pop()
        return chosen.target
