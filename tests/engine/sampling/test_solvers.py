"""Solvers and grids: orders of convergence, forecasts, and the search for a grid."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.errors import SettingError
from paretone.sampling import multistep
from paretone.sampling.actions import SkipAction, extrapolation_factors
from paretone.sampling.flow import Follow, OvershootNoise, euler_steps, overshoot_steps, sampling_grid
from paretone.sampling.grid_search import METHODS as GRID_SEARCH_METHODS
from paretone.sampling.grid_search import OPTIMAL, Times, Trial, Value, most_trials, rounded, search
from paretone.sampling.schedules import EPSS, first_halved, uniform_times
from paretone.sampling.skipping import LayerMemory, apply_module
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable
from tests.workload import crossed

Field = Callable[[Tensor, float], Tensor]
LINEAR_END = (1 + 3 / 13) * math.exp(-2) + (2 * math.sin(3) - 3 * math.cos(3)) / 13
N, T, B = SkipAction.NONE, SkipAction.TS, SkipAction.BS
TIMES = (0.0, 0.1, 0.3, 0.4, 0.8, 1.0)
BEND = 5.0


def solved(field: Field, start: float, times: np.ndarray, method: str, first=multistep.EULER) -> tuple[float, int]:
    """The state at the last time, and how often the field was evaluated."""
    grid = first_halved(times) if first == multistep.MIDPOINT else times
    step_on = multistep.multistep_steps(grid, euler_steps(grid), method, first)
    state = torch.full((1,), start, dtype=torch.float64)
    for step, time in enumerate(grid[:-1].tolist()):
        state = step_on(state, field(state, time), step)
    return state.item(), len(grid) - 1


def linear(state: Tensor, time: float) -> Tensor:
    """x' = −2x + sin 3t, of which x(1) is known."""
    return -2 * state + math.sin(3 * time)


@pytest.mark.parametrize(
    ("method", "first", "sway"),
    [*crossed(multistep.METHODS[:2], multistep.STARTS, [0.0, -1.0]), (multistep.STORK, multistep.HEUN, -1.0)],
)
def test_orders_of_convergence(method: str, first: str, sway: float) -> None:
    wanted = 3 if method == multistep.PREDICTOR_CORRECTOR else 2
    # STORK-2's two leading errors have opposite signs; it takes finer grids until one of them rules.
    counts = (512, 1024, 2048) if method == multistep.STORK else (64, 128, 256)
    errors = []
    for count in counts:
        grid = sampling_grid(count, "uniform", sway).astype(np.float64)
        errors.append(abs(solved(linear, 1.0, grid, method, first)[0] - LINEAR_END))
    assert -np.polyfit(np.log(counts), np.log(errors), 1)[0] > wanted - 0.3, "the slope, both logarithmic"


def test_the_first_step_is_the_starts() -> None:
    """On x' = −2x with one grid step of h: Euler 1 − 2h; Heun and midpoint 1 − 2h + 2h² from the second on."""

    def decay(state: Tensor, time: float) -> Tensor:
        return -2 * state

    one = np.array([0.0, 0.3])
    assert solved(decay, 1.0, one, "ab2")[0] == pytest.approx(1 - 0.6)
    found, evaluations = solved(decay, 1.0, one, "ab2", multistep.MIDPOINT)
    assert (found, evaluations) == (pytest.approx(1 - 0.6 + 0.18), 2)
    two = np.array([0.0, 0.3, 0.5])
    corrected, predicted = 1 - 0.6 + 0.18, 1 - 0.6
    ahead = -2 * predicted + 0.2 / 0.6 * (-2 * predicted + 2)
    assert solved(decay, 1.0, two, "ab2", multistep.HEUN)[0] == pytest.approx(corrected + 0.2 * ahead)
    assert solved(decay, 1.0, two, "ab2", multistep.EULER)[0] == pytest.approx(predicted + 0.2 * ahead)


def test_a_parabola_is_exact_but_for_the_steps_without_three_velocities() -> None:
    """The corrector of the second step on is exact; the last step is only predicted."""
    times = [0.0, 0.1, 0.35, 0.5, 0.9]
    velocities = [torch.tensor([1 + time**2], dtype=torch.float64) for time in times]
    for end in range(3, len(times) + 1):
        step = times[end - 1] - times[end - 2]
        area = step + (times[end - 1] ** 3 - times[end - 2] ** 3) / 3
        found = multistep.adams_moulton(times[end - 3 : end], velocities[end - 3 : end]) * step
        assert found.item() == pytest.approx(area)


def test_storks_recurrence_on_states_is_its_weights() -> None:
    """The method as the paper writes it, state by state, on v(t) = 1 + 2t + 3t² from 0, with exact derivatives."""
    stages, step = 7, 0.4
    scale = 6 / ((stages + 4) * (stages - 1))

    def b(index: int) -> float:
        if index < 2:
            return (1.0, 1 / 3)[index]
        return 4 * (index - 1) * (index + 4) / (3 * index * (index + 1) * (index + 2) * (index + 3))

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
    first, second, third = multistep.gegenbauer_weights(stages)
    assert now == pytest.approx(start + step * (first + 2 * second * step + 6 * third * step**2))


@pytest.mark.parametrize("method", multistep.METHODS)
def test_a_constant_velocity_makes_every_method_the_models_own_step(method: str) -> None:
    """With MegaTTS 3's stochastic step as well: corrected steps meet the same noise again."""
    times = sampling_grid(6, "uniform", -1.0)
    noise = OvershootNoise.draw((1, 4, 2), 6, seed=3)
    own: Follow = overshoot_steps(times, noise.steps)
    step_on = multistep.multistep_steps(times, own, method, multistep.HEUN)
    one = two = noise.initial
    velocity = torch.ones_like(one)
    for step in range(6):
        one, two = own(one, velocity, step), step_on(two, velocity, step)
        assert torch.allclose(one, two, atol=1e-5)


# --- Forecasts --------------------------------------------------------------------------------------------------------
def test_reach_is_counted_in_time_not_in_steps() -> None:
    expected = [0, 0, 0, (0.4 - 0.3) / 0.3, (0.8 - 0.3) / 0.3]
    assert extrapolation_factors((N, T, N, T, T), TIMES) == pytest.approx(expected)
    assert extrapolation_factors((N, B, T, N, T), TIMES) == pytest.approx([0, 0, 2.0, 0, 0.4 / 0.3])


@pytest.mark.parametrize(
    ("row", "branches", "branch_skip"),
    crossed([(N, N, T, T, N, T), (N, T, N, T, B, T), (N, B, T, N, N, T)], [1, 2, 3], ["both", "attention"]),
)
def test_outputs_that_move_evenly_are_forecast_exactly(row: tuple, branches: int, branch_skip: str) -> None:
    """All branches' outputs are linear in time, the others at a constant distance from the first: every skip but those
    before two computed outputs then changes nothing."""
    sampling = Values(steps=len(row), spacing="uniform", sway=-1.0)
    made = StrategyTable(Compatibility("m", "f", "v", sampling), (row,), branch_skip, temporal="forecast")
    plan, memory, times = skip_plan(made), LayerMemory(), made.times
    start = torch.randn(branches, 1, 4, 3, dtype=torch.float64)
    slope = torch.randn(1, 1, 4, 3, dtype=torch.float64)
    early = row.index(T) < 2
    for step in range(len(row)):
        full = (start + slope * times[step]).flatten(0, 1)
        layer_plan = plan.at(step)[0]
        for one, kept in ((layer_plan.attention, memory.attention), (layer_plan.feed_forward, memory.feed_forward)):
            zeros, output = torch.zeros_like(full), lambda rows, of=full: of[: len(rows)]
            hidden = apply_module(zeros, torch.ones(3), output, one, kept, branches)
            if not (early and step == 1):
                assert torch.allclose(hidden, full), f"step {step}"


# --- The search for a grid --------------------------------------------------------------------------------------------
def euler_error(times: Times) -> Value:
    """Error of Euler's method on x' = BEND·e^(−BEND·t), whose end is 1 − e^(−BEND)."""
    found = sum((end - start) * BEND * math.exp(-BEND * start) for start, end in itertools.pairwise(times))
    return (abs(found - (1 - math.exp(-BEND))),)


def uniform(steps: int) -> Times:
    return rounded(uniform_times(steps).tolist())


@pytest.mark.parametrize("method", GRID_SEARCH_METHODS)
def test_it_finds_a_better_grid_than_its_start(method: str) -> None:
    found = search(method, euler_error, [uniform(4)], passes=6)
    assert found.value[0] < 0.8 * euler_error(uniform(4))[0] and found.value == euler_error(found.times)
    gaps = np.diff(found.times)
    assert gaps[0] < gaps[-1], "short steps where the velocity bends"
    best = min((euler_error((0.0, time, 1.0)), time) for time in np.linspace(0.01, 0.99, 981).tolist())
    found = search(method, euler_error, [uniform(2)], passes=8)
    assert found.value[0] == pytest.approx(best[0][0], rel=0.05)
    # Whatever the objective: here noise over the times, and one that is no number but at the start.
    for seed in range(4):

        def noise(times: Times, seed: int = seed) -> Value:
            return (math.sin(1e4 * sum(time**2 for time in times) + seed),)

        assert search(method, noise, [uniform(5)], passes=2).value <= noise(uniform(5))
    start = uniform(4)
    found = search(method, lambda times: (0.0 if times == start else math.nan,), [start], passes=2)
    assert found.times == start and found.value == (0.0,)
    tried: list[Trial] = []
    search(method, euler_error, [uniform(5)], 3, tried.append)
    assert len({one.times for one in tried}) == len(tried)
    assert all(np.all(np.diff(one.times) > 0) and one.times[0] == 0 and one.times[-1] == 1 for one in tried)
    bests = [one.value for one in tried if one.best]
    assert bests == sorted(bests, reverse=True)


def test_the_best_of_several_starts_is_taken_in_no_more_trials_than_foreseen() -> None:
    bent = rounded((1 - np.cos(np.pi / 2 * uniform_times(4))).tolist())
    tried: list[Trial] = []
    search(OPTIMAL, euler_error, [uniform(4), bent], 1, tried.append)
    assert [one.times for one in tried[:2]] == [uniform(4), bent]
    assert [one.best for one in tried[:2]] == [True, euler_error(bent) < euler_error(uniform(4))]
    assert all(one.pass_number == 1 and one.moved for one in tried[2:])
    tried: list[Trial] = []
    search(OPTIMAL, euler_error, [uniform(6)], 2, tried.append)
    assert 40 < len(tried) - 1 <= most_trials(OPTIMAL, 6, 2)


@pytest.mark.parametrize("times", [(0.0, 0.6, 0.5, 1.0), (0.0, 0.5), (0.0,)])
def test_times_must_rise_from_0_to_1(times: Times) -> None:
    with pytest.raises(SettingError, match="must rise from 0 to 1"):
        rounded(times)


@pytest.mark.parametrize(("spacing", "sway"), [("uniform", 0.0), ("epss", -1.0), ("uniform", 0.3)])
def test_every_grid_is_that_of_the_official_formula(spacing: str, sway: float) -> None:
    for steps in range(1, 129):
        if spacing == "epss" and steps in EPSS:
            times = torch.tensor(EPSS[steps], dtype=torch.float32) / 32
        else:
            times = torch.linspace(0, 1, steps + 1)
        if sway:
            times = times + sway * (torch.cos(torch.pi / 2 * times) - 1 + times)
        found = torch.from_numpy(sampling_grid(steps, spacing, sway))
        # Torch's own linspace differs from itself by a unit in the last place, by the processor's instructions.
        torch.testing.assert_close(found, times, atol=2**-22, rtol=0, msg=f"{steps} steps")
