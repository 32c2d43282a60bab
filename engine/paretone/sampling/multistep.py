"""Multistep solvers of dx/dt = v(x, t): the velocities of earlier steps raise the order, with one evaluation a step.

Each method gives the mean velocity over a step from the velocities at the last times, on any grid, and the model's own
step follows that. So an Euler step becomes the method's, and a stochastic step keeps its noise.

* Adams–Bashforth of order 2 (Hairer, Nørsett, Wanner: Solving Ordinary Differential Equations I, III.5, variable
  steps): x ← x + h·(v + h/(2h₋)·(v − v₋)).
* Predictor–corrector after UniPC (Zhao et al., arXiv 2302.04867): the velocity that a step needs anyway first corrects
  the state it was computed at (Adams–Moulton of order 3), then predicts the next (Adams–Bashforth of order 2). UniPC
  does so in the exponential form of noise-prediction models; here the velocity itself is integrated.
* STORK-2 (Tan et al., arXiv 2505.24210): the Runge–Kutta–Gegenbauer method of order 2 with many stages (Skaras et al.,
  J. Comput. Phys. 425, 2021), whose velocities between the steps come from a Taylor expansion in time. The authors'
  code takes the nodes of another family, Runge–Kutta–Legendre; here they are the method's own, so that the order is 2.

Without another start, the first step is Euler's. Torch-free at import.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

    from paretone.sampling.flow import Follow

ADAMS_BASHFORTH, PREDICTOR_CORRECTOR, STORK = "ab2", "unipc", "stork2"
METHODS = (ADAMS_BASHFORTH, PREDICTOR_CORRECTOR, STORK)
EULER, HEUN, MIDPOINT = "euler", "heun", "midpoint"
STARTS = (EULER, HEUN, MIDPOINT)
"""Methods of the first step. Heun's corrects the state with the velocity of the second step, at no cost; midpoint takes
one more evaluation, in the middle of the first step."""
STAGES = 50
"""Stages of STORK-2, as in the authors' code. They cost no evaluation."""
_KEPT = 3
"""Most velocities that a method needs."""


def adams_bashforth(times: Sequence[float], velocities: Sequence[Tensor], end: float) -> Tensor:
    """Mean velocity from the last of ``times`` to ``end``: by the line through the last two ``velocities``, if two."""
    slope = _slope(times, velocities, -1)
    return velocities[-1] if slope is None else velocities[-1] + (end - times[-1]) / 2 * slope


def adams_moulton(times: Sequence[float], velocities: Sequence[Tensor]) -> Tensor:
    """Mean velocity between the last two of ``times``: by the parabola through three ``velocities``, or a line."""
    step = times[-1] - times[-2]
    mean = (velocities[-2] + velocities[-1]) / 2
    bend = _bend(times, velocities)
    return mean if bend is None else mean - step**2 / 6 * bend


def stork(times: Sequence[float], velocities: Sequence[Tensor], end: float, stages: int = STAGES) -> Tensor:
    """Mean velocity from the last of ``times`` to ``end`` by STORK-2, with two derivatives if ``velocities`` allow."""
    slope, bend = _slope(times, velocities, -1), _bend(times, velocities)
    if slope is None:
        return velocities[-1]
    if bend is not None:
        slope = slope + (times[-1] - times[-2]) * bend
    step = end - times[-1]
    _, first, second = gegenbauer_weights(stages)
    mean = velocities[-1] + first * step * slope
    return mean if bend is None else mean + second * step**2 * 2 * bend


@cache
def gegenbauer_weights(stages: int) -> tuple[float, float, float]:
    """Weights of v, h·v′ and h²·v″ in one Runge–Kutta–Gegenbauer step of length h of dx/dt = v(t): its recurrence on
    v(t) = 1, t and t²/2. The first two are 1 and 1/2, as for any method of order 2. ``stages`` is at least 3. Skaras et
    al. 2021, section 3."""

    def b(index: int) -> float:
        if index < 2:
            return (1.0, 1 / 3)[index]
        return 4 * (index - 1) * (index + 4) / (3 * index * (index + 1) * (index + 2) * (index + 3))

    scale = 6 / ((stages + 4) * (stages - 1))

    def powers(node: float) -> np.ndarray:
        return np.array([1.0, node, node**2 / 2])

    before, now = np.zeros(3), scale * powers(0.0)
    node = scale
    for stage in range(2, stages + 1):
        mu = (2 * stage + 1) / stage * b(stage) / b(stage - 1)
        nu = -(stage + 1) / stage * b(stage) / b(stage - 2)
        gamma = -mu * scale * (1 - stage * (stage + 1) / 2 * b(stage - 1))
        before, now = now, mu * now + nu * before + mu * scale * powers(node) + gamma * powers(0.0)
        node = (stage + 4) * (stage - 1) / ((stages + 4) * (stages - 1))
    return float(now[0]), float(now[1]), float(now[2])


def multistep_steps(times: np.ndarray, follow: Follow, method: str = ADAMS_BASHFORTH, start: str = EULER) -> Follow:
    """Single steps along ``times`` by one of :data:`METHODS`, each taken by ``follow``, the model's own step. For one
    passage. With the start ``midpoint``, ``times`` include the middle of the first step (see
    :func:`paretone.sampling.schedules.first_halved`). ``follow`` must give equal states for equal arguments."""
    grid = times.tolist()
    velocities: list[Tensor] = []
    before: list[Tensor] = []
    mean = stork if method == STORK else adams_bashforth
    first_corrected = 3 if start == MIDPOINT else 1
    last_corrected = len(grid) if method == PREDICTOR_CORRECTOR else 1 if start == HEUN else 0

    def step_on(state: Tensor, velocity: Tensor, step: int) -> Tensor:
        if step == 0:
            velocities.clear()
        velocities[:] = [*velocities[1 - _KEPT :], velocity]
        known = grid[step + 1 - len(velocities) : step + 1]
        if start == MIDPOINT and step == 1:
            # Restart at the beginning of the step, with the velocity of its middle.
            return follow(follow(before[0], velocity, 0), velocity, 1)
        if first_corrected <= step <= last_corrected:
            state = follow(before[0], adams_moulton(known, velocities), step - 1)
        before[:] = [state]
        return follow(state, mean(known, velocities, grid[step + 1]), step)

    return step_on


def _slope(times: Sequence[float], velocities: Sequence[Tensor], last: int) -> Tensor | None:
    """First divided difference of the velocities at ``last`` and the one before; ``None`` without one before."""
    if len(velocities) < 1 - last:
        return None
    return (velocities[last] - velocities[last - 1]) / (times[last] - times[last - 1])


def _bend(times: Sequence[float], velocities: Sequence[Tensor]) -> Tensor | None:
    """Second divided difference of the last three velocities; ``None`` if fewer."""
    earlier, later = _slope(times, velocities, -2), _slope(times, velocities, -1)
    return None if earlier is None or later is None else (later - earlier) / (times[-1] - times[-3])
