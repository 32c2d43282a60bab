"""The flow family's sampling loop: a fixed-grid solution of dx/dt = v(x, t) from noise (t = 0) to speech (t = 1).

Techniques change the velocity or the grid passed to the loop, never the loop. Evaluators compute the velocities: with
the whole backbone or by a fixed plan; techniques add others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from paretone.sampling.operations import OperationCounts
from paretone.sampling.schedules import time_grid
from paretone.sampling.skipping import COMPUTE, LayerMemory, LayerPlan, SkipPlan

Velocity = Callable[[Tensor, int], Tensor]
"""Maps the state and the evaluation's number (see :func:`paretone.sampling.schedules.evaluation_times`) to dx/dt."""

Follow = Callable[[Tensor, Tensor, int], Tensor]
"""A sampler's single step: from a state, its velocity and the step's number to the next state."""

Combine = Callable[[Tensor, int], Tensor]
"""Maps the velocities of the branches that ran, (branches, frames, bands), the one that knows most first, and the
number of the evaluation to the sampler's velocity, (1, frames, bands). Called once per evaluation, in order."""


def sampling_grid(steps: int, spacing: str = "epss", sway: float = -1.0) -> np.ndarray:
    """:func:`paretone.sampling.schedules.time_grid` with torch's cosine, as in the official grid."""
    return time_grid(steps, spacing, sway, cosine=lambda angles: torch.from_numpy(angles).cos().numpy())


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
    """Integrate from ``noise`` along ``times`` (steps + 1 values) and return the state at the last time. ``on_step`` is
    called with the step's number and the new state after every step, and may raise to stop. Only the newest state is
    kept. ``follow`` replaces the Euler solver's step, for example by :func:`overshoot_steps`."""
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


@dataclass(frozen=True)
class OvershootNoise:
    """All noise of one synthesis with MegaTTS 3's sampler, whose steps overshoot and are taken back by fresh noise.
    Drawn beforehand, so that two syntheses with one seed differ only by a technique's changes.

    A step from t to t' follows the velocity to o = min(t' + c·(t' − t), 1), scales the state by a = t'/o and adds noise
    up to the noise level at t'. Source: Hu et al., "AMO Sampler: Enhancing Text Rendering with Overshooting"; in the
    official code c is 3, for all frames alike.
    """

    initial: Tensor
    """State at time 0, float32."""
    steps: Tensor
    """(steps, …): noise of the state's shape for each step."""

    @classmethod
    def draw(cls, shape: tuple[int, ...], steps: int, seed: int) -> OvershootNoise:
        """Draw on the CPU, so that a seed gives the same noise on every device, and step by step, so that runs with
        different numbers of steps begin alike."""
        generator = torch.Generator().manual_seed(seed)
        initial, *others = (torch.randn(shape, generator=generator) for _ in range(steps + 1))
        return cls(initial, torch.stack(others))

    def to(self, device: torch.device) -> OvershootNoise:
        return OvershootNoise(self.initial.to(device), self.steps.to(device))


def overshoot_coefficients(start: float, end: float, overshoot: float) -> tuple[float, float, float]:
    """Coefficients of a step from ``start`` to ``end``: distance o − t along the velocity, scale a, and noise strength
    b = √((1 − t')² − a²·(1 − o)²)."""
    target = min(end + overshoot * (end - start), 1.0)
    scale = end / target
    return target - start, scale, math.sqrt(max((1 - end) ** 2 - (scale * (1 - target)) ** 2, 0.0))


def overshoot_steps(times: np.ndarray, noises: Tensor, overshoot: float = 3.0) -> Follow:
    """Steps along ``times`` (steps + 1) with noise, (steps, batch, frames, bands); Euler's without overshoot."""
    coefficients = [overshoot_coefficients(start, end, overshoot) for start, end in itertools.pairwise(times.tolist())]

    def step_on(state: Tensor, velocity: Tensor, step: int) -> Tensor:
        length, scale, strength = coefficients[step]
        return scale * (state + length * velocity) + strength * noises[step]

    return step_on


Probe = Callable[[int, str, Tensor], None]
"""Called with layer, name and value of ``attention_input``, ``attention``, ``feed_forward`` and ``output``."""


class Run(Protocol):
    """State shared by the evaluations of one passage: the result of a backbone's ``begin``."""

    @property
    def branches(self) -> int: ...


class Evaluated(Protocol):
    """A backbone, evaluated whole or by a plan: all that synthesis needs."""

    def velocity(
        self,
        x: Tensor,
        evaluation: int,
        run: Any,
        plans: Sequence[LayerPlan] | None = None,
        memory: Sequence[LayerMemory] | None = None,
        probe: Probe | None = None,
    ) -> Tensor: ...


class Layered(Protocol):
    """A backbone, layer by layer; see :class:`paretone.models.networks.diffusion.DiffusionTransformer`."""

    @property
    def layers(self) -> int: ...

    def enter(self, x: Tensor, evaluation: int, run: Any) -> Tensor: ...

    def layer(
        self,
        index: int,
        hidden: Tensor,
        evaluation: int,
        run: Any,
        plan: LayerPlan = COMPUTE,
        memory: LayerMemory | None = None,
        probe: Probe | None = None,
        in_place: bool = False,
    ) -> Tensor: ...

    def leave(self, hidden: Tensor, entered: Tensor, evaluation: int, run: Any) -> Tensor: ...

    def project(self, left: Tensor) -> Tensor: ...


class Evaluator(Protocol):
    """Evaluations of one passage, in order: the result of :attr:`paretone.setting.plan.FlowPlan.evaluator`."""

    def velocities(self, state: Tensor, evaluation: int, run: Any) -> Tensor:
        """Velocities of all branches of ``run``, (branches, frames, bands), at ``state``, (1, frames, bands)."""

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        """Operations of the finished evaluation, if a whole one costs ``counts``."""


class Whole:
    """Computes every module of every evaluation."""

    def __init__(self, backbone: Evaluated) -> None:
        self._backbone = backbone

    def velocities(self, state: Tensor, evaluation: int, run: Any) -> Tensor:
        return self._backbone.velocity(state, evaluation, run)

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return counts.evaluation


class Planned:
    """Follows a skip plan."""

    def __init__(self, backbone: Evaluated, plan: SkipPlan, layers: int) -> None:
        self._backbone, self._plan = backbone, plan
        self._memory = [LayerMemory() for _ in range(layers)]

    def velocities(self, state: Tensor, evaluation: int, run: Any) -> Tensor:
        return self._backbone.velocity(state, evaluation, run, self._plan.at(evaluation), self._memory)

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return self._plan.operations(evaluation, counts)


def relative_change(before: Tensor, now: Tensor) -> float:
    """L1 norm of the difference over that of the earlier value."""
    return ((now - before).abs().sum() / before.abs().sum()).item()
