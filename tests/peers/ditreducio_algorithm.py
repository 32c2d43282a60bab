"""DiTReducio's Algorithm 1 as published: three passes, in which every trial is a whole evaluation of the model.

Follows section 3.4 of the paper (arXiv 2509.09748) and, where that is silent, the official code. Slow:
:mod:`paretone.techniques.ditreducio.calibration` gives the same table faster: see :mod:`tests.peers.calibration`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from paretone.sampling.actions import SkipAction
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.skipping import LayerMemory, LayerPlan, ModulePlan
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.record import CALIBRATION, PRE_CALIBRATION
from paretone.techniques.ditreducio.trajectory import ERRORS, check_similarity, comparing

Rows = tuple[tuple[SkipAction, ...], ...]
"""``rows[layer][step]``."""
NONE, TS, BS = SkipAction.NONE, SkipAction.TS, SkipAction.BS


@torch.inference_mode()
def published_calibration(target: CalibrationTarget, knobs: Values) -> Rows:
    """Strategy table for one sentence. ``knobs`` are all of the technique's."""
    model = _Model(target, knobs)
    marked = check(model, float(knobs["marked"]))
    table = ((NONE,) * model.steps,) * model.layers
    table = calibrate(model, table, [TS], marked, PRE_CALIBRATION)
    both = [TS, BS] if target.branches > 1 else [TS]
    return calibrate(model, table, both, np.ones_like(marked), CALIBRATION)


def check(model: _Model, q: float) -> np.ndarray:
    """Pass 1, check: mark the ``q`` percent of layer-step pairs with the most diagonal attention, (layers, steps)."""
    s = np.full((model.layers, model.steps), np.nan)
    x = model.noise
    for t in range(model.steps):
        output, s[:, t] = model.with_similarities(x, t)
        x = model.step(x, t, output)
    return s >= np.percentile(s, 100 - q)


def calibrate(model: _Model, table: Rows, strategies: Sequence[SkipAction], allowed: np.ndarray, phase: str) -> Rows:
    """Passes 2 and 3, pre-calibration and calibration: at every step t, each ``allowed`` layer l without a strategy
    tries ``strategies`` in turn and keeps the first whose error is below l/L · δ."""
    columns = []
    x, L = model.noise, model.layers
    model.forget()
    for t in range(model.steps):
        known = [row[t] for row in table]
        # O: the output with the strategies known so far at this step.
        O = model.output(x, t, known)  # noqa: E741
        for l in range(L) if t else ():  # Nothing is cached at the first step.  # noqa: E741
            if known[l] is not NONE or not allowed[l, t]:
                continue
            for strategy in strategies:
                # O': the same with this strategy at (l, t).
                tried = [*known[:l], strategy, *known[l + 1 :]]
                if model.error(O, model.output(x, t, tried), phase) < (l + 1) / L * model.threshold:
                    known = tried
                    break
        columns.append(known)
        # Take the step with the strategies found, so that errors are those of the compressed trajectory.
        x = model.step(x, t, model.output(x, t, known, keep=True))
    return tuple(zip(*columns, strict=True))


class _Model:
    """The model M on one sentence, for the algorithm."""

    def __init__(self, target: CalibrationTarget, knobs: Values) -> None:
        self._target = target
        self._branch_skip, self._metric = str(knobs["branch_skip"]), ERRORS[str(knobs["metric"])]
        self._check_phase = str(knobs["check_phase"])
        self._compared = {one: comparing(target, str(knobs["compare"]), one) for one in (PRE_CALIBRATION, CALIBRATION)}
        self.threshold = float(knobs["threshold"])
        """δ."""
        self.layers, self.steps, self.noise = target.backbone.layers, target.steps, target.noise
        self.forget()

    def forget(self) -> None:
        self._memory = [LayerMemory() for _ in range(self.layers)]

    def output(self, x: Tensor, t: int, actions: Sequence[SkipAction], keep: bool = False) -> Tensor:
        """Output of all branches at state ``x`` and step ``t``; with ``keep``, write the caches."""
        plans = [layer_plan(action, self._branch_skip, keep) for action in actions]
        return self._target.backbone.evaluate(x, t, self._target.run, plans, self._memory)

    def with_similarities(self, x: Tensor, t: int) -> tuple[Tensor, list[float]]:
        """Output without strategies, and each layer's similarity of attention and identity."""
        found: dict[int, float] = {}

        def probe(layer: int, name: str, value: Tensor) -> None:
            if name == "attention_input":
                found[layer] = check_similarity(self._target, self._check_phase, layer, value)

        output = self._target.backbone.evaluate(x, t, self._target.run, probe=probe)
        return output, [found[layer] for layer in range(self.layers)]

    def error(self, output: Tensor, changed: Tensor, phase: str) -> float:
        """ε(O, O')."""
        return self._metric(self._compared[phase](output), self._compared[phase](changed))

    def step(self, x: Tensor, t: int, output: Tensor) -> Tensor:
        return self._target.follow(x, self._target.guide(output), t)


def layer_plan(action: SkipAction, branch_skip: str, keep: bool) -> LayerPlan:
    """Plan of a layer with ``action``; with ``keep``, store everything that later steps may need."""

    def plan(action: SkipAction) -> ModulePlan:
        return ModulePlan(action, keep and action is not TS, keep and action is NONE)

    spares_feed_forward = action is not BS or branch_skip == "both"
    return LayerPlan(plan(action), plan(action if spares_feed_forward else NONE))
