"""Targets against velocity fields whose way is known in closed form."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from paretone.techniques.average_velocity.subjects import displacement, mean_flow

STATE = torch.linspace(-2, 3, 12, dtype=torch.float64).reshape(2, 3, 2)
STARTS, ENDS = torch.tensor([0.1, 0.4], dtype=torch.float64), torch.tensor([0.7, 0.9], dtype=torch.float64)


def _decay(state: Tensor, times: Tensor) -> Tensor:
    """dz/dt = −2z."""
    return -2 * state


def _decayed(state: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    """Its average velocity."""
    lengths = (ends - starts)[:, None, None]
    return state * (torch.exp(-2 * lengths) - 1) / lengths


def _grid(steps: int) -> Tensor:
    shares = torch.linspace(0, 1, steps + 1, dtype=torch.float64)[:, None]
    return STARTS + shares * (ENDS - STARTS)


def test_every_item_goes_over_its_own_interval_and_steps_converge() -> None:
    exact = _decayed(STATE, STARTS, ENDS)
    errors = [float((displacement(_decay, STATE, _grid(steps)) - exact).abs().max()) for steps in (8, 16, 1000)]
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.1)  # Euler's steps are of first order.
    assert errors[2] < 5e-3


def test_a_field_of_time_alone_gives_its_mean_at_the_steps() -> None:
    found = displacement(lambda state, times: times[:, None, None].expand_as(state), STATE, _grid(4))
    mean = _grid(4)[:-1].mean(0)
    torch.testing.assert_close(found, mean[:, None, None].expand_as(STATE))


def test_the_true_average_velocity_is_its_own_mean_flow_target() -> None:
    def average(state: Tensor, intervals: Tensor) -> Tensor:
        return _decayed(state, *intervals.unbind(-1))

    intervals = torch.stack([STARTS, ENDS], dim=-1)
    predicted, target = mean_flow(average, _decay(STATE, STARTS), STATE, intervals)
    torch.testing.assert_close(predicted, _decayed(STATE, STARTS, ENDS))
    torch.testing.assert_close(target, predicted)
    wrong = STATE * math.pi
    _, other = mean_flow(average, wrong, STATE, intervals)
    assert (other - predicted).abs().max() > 1


def test_over_no_time_the_target_is_the_velocity() -> None:
    intervals = torch.stack([STARTS, STARTS], dim=-1)
    _, target = mean_flow(lambda state, times: state * times[:, :1, None], STATE * 2, STATE, intervals)
    torch.testing.assert_close(target, STATE * 2)
