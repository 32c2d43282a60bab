"""MegaTTS 3's sampler: every step goes too far, and fresh noise takes it back.

A step from t to t' follows the velocity to o = min(t' + c·(t' − t), 1) instead, scales the state by a = t'/o and adds
noise until it is as noisy as a state at t' should be. Source: Hu et al., "AMO Sampler: Enhancing Text Rendering with
Overshooting"; in the official code c is 3, for all frames alike.

The result is random beyond the initial noise. All noise is drawn beforehand, so that two syntheses of one seed differ
by what a technique changes and by nothing else.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from paretone.sampling.flow import Follow


@dataclass(frozen=True)
class OvershootNoise:
    """All that is random about one synthesis."""

    initial: Tensor
    """The state at time 0, float32."""
    steps: Tensor
    """(steps, …) one of the state's shape for every step."""

    @classmethod
    def draw(cls, shape: tuple[int, ...], steps: int, seed: int) -> OvershootNoise:
        """On the CPU, so that one seed is one noise on every device. One after the other, so that runs of different
        numbers of steps begin alike."""
        generator = torch.Generator().manual_seed(seed)
        initial, *others = (torch.randn(shape, generator=generator) for _ in range(steps + 1))
        return cls(initial, torch.stack(others))

    def to(self, device: torch.device) -> OvershootNoise:
        return OvershootNoise(self.initial.to(device), self.steps.to(device))


def overshoot_coefficients(start: float, end: float, overshoot: float) -> tuple[float, float, float]:
    """Coefficients of a step from ``start`` to ``end``: how far the velocity is followed (o − t), the scale a, and the
    noise's strength b = √((1 − t')² − a²·(1 − o)²)."""
    target = min(end + overshoot * (end - start), 1.0)
    scale = end / target
    return target - start, scale, math.sqrt(max((1 - end) ** 2 - (scale * (1 - target)) ** 2, 0.0))


def overshoot_steps(times: np.ndarray, noises: Tensor, overshoot: float = 3.0) -> Follow:
    """The sampler's single steps along ``times`` (steps + 1 values) with the noise drawn for them, (steps, batch,
    frames, bands). Without overshoot they are Euler's."""
    coefficients = [overshoot_coefficients(start, end, overshoot) for start, end in itertools.pairwise(times.tolist())]

    def step_on(state: Tensor, velocity: Tensor, step: int) -> Tensor:
        length, scale, strength = coefficients[step]
        return scale * (state + length * velocity) + strength * noises[step]

    return step_on
