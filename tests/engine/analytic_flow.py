"""A flow model whose velocity is a formula, so that its end point and errors are known; plans run as in real ones."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from paretone.models.base import ModelInfo, Voice
from paretone.models.families.evaluations import times_of
from paretone.sampling.flow import euler_steps, integrate
from paretone.sampling.schedules import evaluation_times
from paretone.setting.plan import FlowPlan
from tests.engine import small_speech

BEND = 4.0
"""The velocity falls fast near the noise: x' = BEND·e^(−BEND·t) − x/2."""


def velocity(state: Tensor, time: float) -> Tensor:
    return BEND * math.exp(-BEND * time) - 0.5 * state


class AnalyticFlow:
    """What searches and views ask of a flow model; the states have four frames and two bands."""

    def __init__(self, field: Callable[[Tensor, float], Tensor] = velocity) -> None:
        self.info: ModelInfo = small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None).info
        self._field = field
        self.evaluations = 0

    def script(self, text: str, voice: Voice, plan: FlowPlan, *_: object) -> tuple[str, FlowPlan]:
        return text, plan

    def replanned(self, script: tuple[str, FlowPlan], plan: FlowPlan, *_: object) -> tuple[str, FlowPlan]:
        return script[0], plan

    def last_state(self, script: tuple[str, FlowPlan], check: Callable[[], None] = lambda: None) -> np.ndarray:
        text, plan = script
        times = times_of(plan).astype(np.float64)
        follow = euler_steps(times) if plan.stepper is None else plan.stepper.make(times, euler_steps(times))
        at = evaluation_times(times, plan.options["solver"]).tolist()

        def evaluate(state: Tensor, evaluation: int) -> Tensor:
            self.evaluations += 1
            return self._field(state, at[evaluation])

        seed = torch.Generator().manual_seed(plan.seed + len(text))
        noise = torch.randn(4, 2, generator=seed, dtype=torch.float64)
        solver = plan.options["solver"]
        return integrate(evaluate, noise, times, solver, lambda step, state: check(), follow).numpy()
