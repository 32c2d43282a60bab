"""Targets of an average velocity u(z, t, r), which carries a state from time t to r: z_r = z_t + (r − t)·u.

Time runs from noise (0) to speech (1), so that t ≤ r, and a velocity is that of the flow, dz/dt = v(z, t).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor

Field = Callable[[Tensor, Tensor], Tensor]
"""From states (B, frames, bands) and times, (B,) or intervals (B, 2), to velocities (B, frames, bands)."""


def displacement(velocity: Field, state: Tensor, times: Tensor) -> Tensor:
    """(z_r − z_t)/(r − t), (B, frames, bands): how far ``velocity`` carries ``state`` per unit of time, by Euler steps
    along ``times`` (steps + 1, B) from t to r. Intervals have a length.

    Steps of second order (Adams–Bashforth, DPM-Solver++) end further from the truth than Euler's on the bundled F5:
    eight of them at three times its squared distance to 40.
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
