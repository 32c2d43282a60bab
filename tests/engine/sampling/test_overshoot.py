"""The overshooting sampler: its formulas, its noise, and Euler's method as the case without overshoot."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from paretone.sampling.flow import OvershootNoise, integrate, overshoot_coefficients, overshoot_steps, sampling_grid

SHAPE = 1, 5, 3


@pytest.mark.parametrize("steps", [1, 2, 7, 32])
@pytest.mark.parametrize("sway", [0.0, -1.0])
def test_without_overshoot_it_is_eulers_method(steps: int, sway: float) -> None:
    times = sampling_grid(steps, "uniform", sway)
    noise = OvershootNoise.draw(SHAPE, steps, seed=1)
    follow = overshoot_steps(times, noise.steps, overshoot=0.0)
    found, expected = (
        integrate(lambda x, step: x.cos() + step, noise.initial, times, follow=one) for one in (follow, None)
    )
    assert torch.allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("overshoot", [0.5, 2.0, 3.0])
def test_a_step_ends_as_noisy_as_its_time_demands(overshoot: float) -> None:
    """Of noise that the velocity would take away until time 1: what is left at t' has the strength 1 − t'."""
    times = sampling_grid(16, "uniform", -1.0).tolist()
    for start, end in itertools.pairwise(times):
        length, scale, strength = overshoot_coefficients(start, end, overshoot)
        target = start + length
        assert target == pytest.approx(min(end + overshoot * (end - start), 1.0))
        assert scale * target == pytest.approx(end), "the speech in the state"
        assert math.hypot(scale * (1 - target), strength) == pytest.approx(1 - end, abs=1e-7), "the noise in it"


def test_the_last_step_adds_no_noise() -> None:
    times = sampling_grid(8, "uniform", -1.0)
    noise = OvershootNoise.draw(SHAPE, 8, seed=1)
    loud = noise.steps.clone()
    loud[-1] *= 1e6
    results = [overshoot_steps(times, one)(noise.initial, noise.initial, 7) for one in (noise.steps, loud)]
    assert torch.equal(*results)


def test_a_straight_path_arrives_whatever_the_noise() -> None:
    """If the velocity is exact for the state, overshooting and noise do not change the end."""
    goal = torch.linspace(-1, 1, 15).reshape(SHAPE)
    times = sampling_grid(16, "uniform", -1.0)
    for seed in (0, 1):
        noise = OvershootNoise.draw(SHAPE, 16, seed)
        follow = overshoot_steps(times, noise.steps)
        found = integrate(lambda x, step: (goal - x) / (1 - float(times[step])), noise.initial, times, follow=follow)
        assert torch.allclose(found, goal, atol=1e-5)


def test_one_seed_is_one_noise() -> None:
    noise, again, other = (OvershootNoise.draw(SHAPE, 4, seed) for seed in (7, 7, 8))
    assert torch.equal(noise.initial, again.initial)
    assert torch.equal(noise.steps, again.steps)
    assert not torch.equal(noise.steps, other.steps)
    drawn = torch.stack([noise.initial, *noise.steps])
    assert drawn.shape == (5, *SHAPE)
    assert drawn.flatten(1).unique(dim=0).shape[0] == 5, "no noise is used twice"


def test_runs_of_different_lengths_begin_alike() -> None:
    short, long = (OvershootNoise.draw(SHAPE, steps, seed=7) for steps in (4, 32))
    assert torch.equal(short.initial, long.initial)
    assert torch.equal(short.steps, long.steps[:4])


def test_a_step_is_the_same_every_time() -> None:
    times, noise = sampling_grid(8, "uniform", -1.0), OvershootNoise.draw(SHAPE, 8, seed=1)
    follow = overshoot_steps(times, noise.steps)
    state = noise.initial.clone()
    first, second = (follow(state, state, 3) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(state, noise.initial), "and leaves the state alone"
