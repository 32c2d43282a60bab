"""The backbone's and the sampler's whole work for one sentence, and nothing else."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.flow import integrate


def sample(target: CalibrationTarget) -> Tensor:
    """The last state, prompt frames included."""
    backbone: Any = target.backbone  # Of the models here, each also evaluates all of its layers at once.

    def velocity(state: Tensor, step: int) -> Tensor:
        return target.guide(backbone.evaluate(state, step, target.run, None, None))

    return integrate(velocity, target.noise, target.times, follow=target.follow)
