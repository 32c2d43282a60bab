"""Looking at what every module puts out along a sampling run."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.skipping import COMPUTE, LayerMemory
from paretone.speaking import scripted
from paretone.techniques.ditreducio.preparation import knobs_of
from paretone.techniques.ditreducio.skip_plan import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.views.view import Stages, Task

MODULES = {"attention": "Attention", "feed_forward": "Feed-forward"}
"""The modules that DiTReducio caches, by their names for a backbone's ``probe``, and their titles."""

See = Callable[[int, int, str, Tensor], None]
"""Called with step, layer, one of :data:`MODULES` and its output before the gate, (branches·items, frames, width)."""


def target_of(task: Task) -> CalibrationTarget:
    """The first passage of the task's sentence, about to be sampled. Raises :class:`SettingError` if the model or
    the solver takes no single steps."""
    knobs_of(task.setting)
    script = scripted(task.flow, task.utterance.text, task.utterance.voice, task.setting, prepared=False)
    target = task.flow.calibration_target(script)
    return target


def run_through(
    target: CalibrationTarget, work: Stages, see: See | None = None, table: StrategyTable | None = None
) -> Tensor:
    """Take every step of ``target``, under ``table`` if there is one; each layer is a unit of ``work``. The last
    state, (items, frames, bands)."""
    state, layers = target.noise, target.backbone.layers
    plan = None if table is None else skip_plan(table)
    memories = [LayerMemory() for _ in range(layers)]
    for step in range(target.steps):

        def probe(layer: int, name: str, value: Tensor, step: int = step) -> None:
            if see is not None and name in MODULES:
                see(step, layer, name, value)

        entered = hidden = target.backbone.enter(state, target.run)
        for layer in range(layers):
            layer_plan = COMPUTE if plan is None else plan.at(step)[layer]
            watching = None if see is None else probe
            hidden = target.backbone.layer(layer, hidden, step, target.run, layer_plan, memories[layer], watching)
        left = target.backbone.leave(hidden, entered, step, target.run)
        state = target.follow(state, target.guide(left), step)
        work.done(layers)
    return state


def cosine_similarity(one: Tensor, other: Tensor) -> float:
    """Cosine similarity of two whole outputs, frames and channels together."""
    one, other = one.flatten().double(), other.flatten().double()
    return float(torch.dot(one, other) / (one.norm() * other.norm()).clamp_min(1e-12))
