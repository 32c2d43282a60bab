"""Measurement of an error curve with a loaded model before the first take, and the evaluations by its schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from paretone.last_used import LastUsed
from paretone.models import catalogue
from paretone.models.families.evaluations import Stage
from paretone.sampling.flow import Evaluated, Evaluator, Planned, Run, relative_change
from paretone.sampling.operations import OperationCounts
from paretone.sampling.skipping import SkipPlan
from paretone.techniques.error_curve import ErrorCurve

CURVES = 256
"""Number of curves kept: a server may get another seed with each request."""


def evaluators(stage: Stage, threshold: float) -> Callable[[], Evaluator]:
    """See :attr:`paretone.setting.plan.FlowPlan.evaluator`. Measures the curve once per voice, seed and plan, of the
    last :data:`CURVES`."""
    backbone = stage.layered
    key = replace(stage.plan, evaluator=None, notes=()), stage.voice.id, stage.plan.seed
    curves: LastUsed[ErrorCurve] = stage.memory.setdefault(__name__, LastUsed(CURVES))
    plan = SkipPlan.by_module(*curves.of(key, partial(measured, stage)).schedule(threshold), backbone.layers)
    return lambda: Planned(backbone, plan, backbone.layers)


@torch.inference_mode()
def measured(stage: Stage) -> ErrorCurve:
    """Curve under the stage's plan and voice, mean over the catalogue's first sentences."""
    stage.status("Measuring how modules change from step to step …")
    curves = []
    for text in catalogue.sentences()[:2]:
        meter = ChangeMeter(stage.layered)
        stage.sample(text, meter)
        curves.append(ErrorCurve(**{kind: tuple(values) for kind, values in meter.changes.items()}))
    return ErrorCurve.mean(curves)


class ChangeMeter:
    """Evaluator that computes everything and measures the change of each kind of module between evaluations.
    :attr:`changes` holds, for every evaluation, the relative L1 change since the one before, mean over the layers;
    infinite at the first, and after a change in the number of branches."""

    def __init__(self, backbone: Evaluated) -> None:
        self._backbone = backbone
        self._last: dict[tuple[str, int], Tensor] = {}
        self.changes: dict[str, list[float]] = {"attention": [], "feed_forward": []}

    def velocities(self, state: Tensor, evaluation: int, run: Run) -> Tensor:
        found: dict[str, list[float]] = {kind: [] for kind in self.changes}

        def probe(layer: int, name: str, value: Tensor) -> None:
            if name in found:
                before = self._last.get((name, layer))
                if before is None or before.shape != value.shape:
                    found[name].append(float("inf"))
                else:
                    found[name].append(relative_change(before, value))
                self._last[name, layer] = value

        velocity: Callable[..., Tensor] = self._backbone.velocity
        velocities = velocity(state, evaluation, run, probe=probe)
        for kind, values in found.items():
            self.changes[kind].append(sum(values) / len(values))
        return velocities

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return counts.evaluation
