"""The flow family's sampling loop: a fixed-grid solution of dx/dt = v(x, t) from noise (t = 0) to speech (t = 1).

A synthesis is only this: techniques change the velocity or the grid that the loop gets, never the loop.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from paretone.sampling.schedules import time_grid

Velocity = Callable[[Tensor, int], Tensor]
"""From the state and the number of the evaluation (see :func:`paretone.sampling.schedules.evaluation_times`) to
dx/dt."""

Follow = Callable[[Tensor, Tensor, int], Tensor]
"""A sampler's single step: from a state, its velocity and the step's number to the next state."""

Combine = Callable[[Tensor, int], Tensor]
"""From the velocities of the branches that ran, (branches, frames, bands), the one that knows most first, and the
number of the evaluation to the velocity that the sampler follows, (1, frames, bands). Called once per evaluation, in
order."""


def sampling_grid(steps: int, spacing: str = "epss", sway: float = -1.0) -> np.ndarray:
    """:func:`paretone.sampling.schedules.time_grid` with torch's cosine, as in the official grid."""
    return time_grid(
        steps,
        spacing,
        sway,
        cosine=lambda angles: torch.from_numpy(angles).cos().numpy(),
    )


def euler_steps(times: np.ndarray) -> Follow:
    """Single steps of :func:`integrate` with the Euler solver."""

    def step_on(state: Tensor, velocity: Tensor, step: int) -> Tensor:
        return state + float(times[step + 1] - times[step]) * velocity

    return step_on


def integrate(
    velocity: Velocity,
    noise: Tensor,
    times: np.ndarray,
    solver: str = "euler",
    on_step: Callable[[int, Tensor], None] | None = None,
    follow: Follow | None = None,
) -> Tensor:
    """Integrate from ``noise`` along ``times`` (steps + 1 values) and return the state at the last time.

    ``on_step`` is called with the step's number and the new state after every step, and may raise to stop. No state but
    the newest is kept. ``follow`` replaces the Euler solver's step, such as
    :func:`paretone.sampling.overshoot.overshoot_steps`.
    """
    state = noise
    grid = torch.from_numpy(times).to(noise.device)
    follow = follow or euler_steps(times)
    for step in range(len(times) - 1):
        if solver == "euler":
            state = follow(state, velocity(state, step), step)
        else:
            length = grid[step + 1] - grid[step]
            halfway = state + 0.5 * length * velocity(state, 2 * step)
            state = state + length * velocity(halfway, 2 * step + 1)
        if on_step is not None:
            on_step(step, state)
    return state
