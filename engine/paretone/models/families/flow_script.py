"""Network, passages and time grid of one synthesis of a flow model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from paretone.models.base import Script
from paretone.models.families.passages import FlowPrompt, FramedPassage
from paretone.sampling.evaluating import Evaluator
from paretone.sampling.flow import sampling_grid
from paretone.sampling.schedules import first_halved
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan


@dataclass(frozen=True)
class FlowNetwork:
    """The network that computes."""

    backbone: Any
    """A module of the model's own kind; see :class:`Evaluated`."""
    evaluator: Callable[[], Evaluator]
    """Gives what makes the evaluations of a passage."""


@dataclass(frozen=True)
class FlowScript(Script):
    """Everything one synthesis needs."""

    plan: FlowPlan
    network: FlowNetwork
    prompt: FlowPrompt
    passages: tuple[FramedPassage, ...]

    @property
    def backbone(self) -> Any:
        return self.network.backbone

    @cached_property
    def times(self) -> np.ndarray:
        return times_of(self.plan)

    @property
    def steps(self) -> int:
        return len(self.times) - 1


def times_of(plan: FlowPlan) -> np.ndarray:
    """Times of the grid of ``plan``, float32, one more than steps: placed, or those of its options."""
    times = grid_of(plan.options) if plan.times is None else np.array(plan.times, np.float32)
    return first_halved(times) if plan.halves_first else times


def grid_of(options: Values) -> np.ndarray:
    """Times (steps + 1,) of the grid that ``options`` describe."""
    return sampling_grid(options["steps"], options["spacing"], options["sway"])
