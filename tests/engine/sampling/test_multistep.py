"""Multistep solvers: their formulas, closed-form solutions, orders of convergence."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.sampling.flow import Follow, OvershootNoise, euler_steps, overshoot_steps, sampling_grid
from paretone.sampling.multistep import (
    EULER,
    HEUN,
    METHODS,
    MIDPOINT,
    PREDICTOR_CORRECTOR,
    STAGES,
    STARTS,
    STORK,
    adams_bashforth,
    adams_moulton,
    gegenbauer_weights,
    multistep_steps,
    stork,
)
from paretone.sampling.schedules import first_halved

Field = Callable[[Tensor, float], Tensor]
UNEVEN = np.array([0.0, 0.1, 0.35, 0.5, 0.9, 1.0])


def solved(field: Field, start: float, times: np.ndarray, method: str, first: str = EULER) -> tuple[float, int]:
    """The state at the last time, and how often the field was evaluated."""
    grid = first_halved(times) if first == MIDPOINT else times
    step_on = multistep_steps(grid, euler_steps(grid), method, first)
    state = torch.full((1,), start, dtype=torch.float64)
    for step, time in enumerate(grid[:-1].tolist()):
        state = step_on(state, field(state, time), step)
    return state.item(), len(grid) - 1


def linear(state: Tensor, time: float) -> Tensor:
    """x' = −2x + sin 3t, of which x(1) is known."""
    return -2 * state + math.sin(3 * time)


LINEAR_END = (1 + 3 / 13) * math.exp(-2) + (2 * math.sin(3) - 3 * math.cos(3)) / 13


def order(method: str, first: str, sway: float) -> float:
    """The slope of the error over steps, both logarithmic."""
    # STORK-2's two leading errors have opposite signs; it takes finer grids until one of them rules.
    counts = (512, 1024, 2048) if method == STORK else (64, 128, 256)
    errors = []
    for count in counts:
        grid = sampling_grid(count, "uniform", sway).astype(np.float64)
        errors.append(abs(solved(linear, 1.0, grid, method, first)[0] - LINEAR_END))
    return -float(np.polyfit(np.log(counts), np.log(errors), 1)[0])


@pytest.mark.parametrize(
    ("method", "first"), [(one, start) for one in METHODS for start in STARTS if one != STORK or start == HEUN]
)
@pytest.mark.parametrize("sway", [0.0, -1.0])
def test_orders_of_convergence(method: str, first: str, sway: float) -> None:
    wanted = 3 if method == PREDICTOR_CORRECTOR else 2
    assert order(method, first, sway) > wanted - 0.3


def test_stork_on_a_bent_grid_is_nearer_than_adams_bashforth() -> None:
    grid = sampling_grid(64, "uniform", -1.0).astype(np.float64)
    errors = [abs(solved(linear, 1.0, grid, one, HEUN)[0] - LINEAR_END) for one in (STORK, "ab2")]
    assert errors[0] < errors[1] / 10


def test_the_first_step_is_the_starts() -> None:
    """On x' = −2x with one grid step of h: Euler 1 − 2h; Heun and midpoint 1 − 2h + 2h² from the second on."""

    def decay(state: Tensor, time: float) -> Tensor:
        return -2 * state

    one = np.array([0.0, 0.3])
    assert solved(decay, 1.0, one, "ab2")[0] == pytest.approx(1 - 0.6)
    found, evaluations = solved(decay, 1.0, one, "ab2", MIDPOINT)
    assert (found, evaluations) == (pytest.approx(1 - 0.6 + 0.18), 2)
    two = np.array([0.0, 0.3, 0.5])
    corrected, predicted = 1 - 0.6 + 0.18, 1 - 0.6
    ahead = -2 * predicted + 0.2 / 0.6 * (-2 * predicted + 2)
    assert solved(decay, 1.0, two, "ab2", HEUN)[0] == pytest.approx(corrected + 0.2 * ahead)
    assert solved(decay, 1.0, two, "ab2", EULER)[0] == pytest.approx(predicted + 0.2 * ahead)


@pytest.mark.parametrize("first", [HEUN, MIDPOINT])
@pytest.mark.parametrize("method", METHODS)
def test_velocities_that_are_lines_in_time_are_exact(method: str, first: str) -> None:
    assert solved(lambda state, time: state * 0 + 3 + 4 * time, 1.0, UNEVEN, method, first)[0] == pytest.approx(6.0)


def test_a_parabola_is_exact_but_for_the_steps_without_three_velocities() -> None:
    """The corrector of the second step on is exact; the last step is only predicted."""

    def parabola(time: float) -> float:
        return 1 + time**2

    times = UNEVEN[:-1].tolist()
    velocities = [torch.tensor([parabola(time)], dtype=torch.float64) for time in times]
    for end in range(3, len(times) + 1):
        step = times[end - 1] - times[end - 2]
        area = step + (times[end - 1] ** 3 - times[end - 2] ** 3) / 3
        found = adams_moulton(times[end - 3 : end], velocities[end - 3 : end]) * step
        assert found.item() == pytest.approx(area)


def test_adams_bashforth_as_written() -> None:
    before, now = torch.tensor([2.0]), torch.tensor([5.0])
    found = adams_bashforth([0.0, 0.4], [before, now], 0.6)
    assert found.item() == pytest.approx(5 + 0.2 / (2 * 0.4) * 3)
    assert adams_bashforth([0.4], [now], 0.6) is now


def test_storks_recurrence_on_states_is_its_weights() -> None:
    """The method as the paper writes it, state by state, on v(t) = 1 + 2t + 3t² from 0, with exact derivatives."""
    stages, step = 7, 0.4
    scale = 6 / ((stages + 4) * (stages - 1))

    def b(index: int) -> float:
        return (
            1.0
            if index == 0
            else 1 / 3
            if index == 1
            else 4 * (index - 1) * (index + 4) / (3 * index * (index + 1) * (index + 2) * (index + 3))
        )

    def velocity(time: float) -> float:
        return 1 + 2 * time + 3 * time**2

    start, before, now = 10.0, 10.0, 10.0 + scale * step * velocity(0.0)
    for stage in range(2, stages + 1):
        earlier = stage - 1
        node = scale if earlier == 1 else (earlier + 4) * (earlier - 1) / ((stages + 4) * (stages - 1))
        mu = (2 * stage + 1) / stage * b(stage) / b(stage - 1)
        nu = -(stage + 1) / stage * b(stage) / b(stage - 2)
        gamma = -mu * scale * (1 - stage * (stage + 1) * b(stage - 1) / 2)
        ahead = mu * now + nu * before + (1 - mu - nu) * start
        before, now = now, ahead + mu * scale * step * velocity(node * step) + gamma * step * velocity(0.0)
    first, second, third = gegenbauer_weights(stages)
    assert now == pytest.approx(start + step * (first + 2 * second * step + 6 * third * step**2))


@pytest.mark.parametrize("stages", [3, 10, STAGES])
def test_storks_weights_are_those_of_an_order_of_two(stages: int) -> None:
    assert gegenbauer_weights(stages)[:2] == (pytest.approx(1.0), pytest.approx(0.5))


def test_stork_with_one_derivative_is_adams_bashforth() -> None:
    velocities = [torch.tensor([2.0]), torch.tensor([5.0])]
    pair = [one([0.0, 0.4], velocities, 0.6) for one in (stork, adams_bashforth)]
    assert torch.allclose(*pair)


def test_stork_takes_the_derivatives_of_the_parabola() -> None:
    """v = 1 + 2t + 3t² at uneven times: at 0.5 its derivatives are 5 and 6."""
    times = [0.1, 0.2, 0.5]
    velocities = [torch.tensor([1 + 2 * time + 3 * time**2], dtype=torch.float64) for time in times]
    _, first, second = gegenbauer_weights(STAGES)
    wanted = velocities[-1].item() + first * 0.3 * 5 + second * 0.3**2 * 6
    assert stork(times, velocities, 0.8).item() == pytest.approx(wanted)


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_velocity_makes_every_method_the_models_own_step(method: str) -> None:
    """With MegaTTS 3's stochastic step as well: corrected steps meet the same noise again."""
    times = sampling_grid(6, "uniform", -1.0)
    noise = OvershootNoise.draw((1, 4, 2), 6, seed=3)
    own: Follow = overshoot_steps(times, noise.steps)
    step_on = multistep_steps(times, own, method, HEUN)
    one = two = noise.initial
    velocity = torch.ones_like(one)
    for step in range(6):
        one, two = own(one, velocity, step), step_on(two, velocity, step)
        assert torch.allclose(one, two, atol=1e-5)


def test_velocities_are_kept_no_longer_than_needed() -> None:
    """Only the last three matter: with others before them the next step is the same."""
    times = sampling_grid(8, "uniform", 0.0)
    ends = []
    for first in (0.0, 100.0):
        step_on = multistep_steps(times, lambda state, velocity, step: velocity, STORK)
        for step, value in enumerate((first, 1.0, 2.0, 4.0)):
            found = step_on(torch.zeros(1), torch.tensor([value]), step)
        ends.append(found)
    assert torch.equal(*ends)
