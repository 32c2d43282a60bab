"""A sentence's way to its end under a strategy table, and what single changes of the table do to it.

A change of one cell moves the state after its step; what it moves there is measured, by evaluating that step from the
changed layer on. Where the cells after it skip as well, they reuse other outputs than before: their steps are measured
too. How far a movement comes until the end is the sentence's gain from that step on, which one perturbed run gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor

from paretone.sampling.actions import SkipAction, extrapolation_factors
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.skipping import LayerMemory, LayerPlan, ModulePlan
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.trajectory import Work

Rows = Sequence[Sequence[SkipAction]]
"""``rows[layer][step]``."""
SAMPLES = 8192
"""At most this many values of a state stand for all of it."""


class Change(NamedTuple):
    """Another action of one cell."""

    layer: int
    step: int
    action: SkipAction


@dataclass
class _Step:
    """One step of the way: what a change of it starts from."""

    state: Tensor
    following: Tensor
    """The next state."""
    entered: Tensor
    inputs: list[Tensor]
    """What goes into each layer."""
    before: list[LayerMemory]
    """What each layer remembers when the step begins."""


class EndPath:
    """One sentence. Its states are (1, frames, bands)."""

    def __init__(self, target: CalibrationTarget, knobs: Values, work: Work) -> None:
        self._target, self._work = target, work
        self._backbone = target.backbone
        self._layers, self._steps = target.backbone.layers, target.steps
        self._times = target.times.tolist()
        self._forecasts = knobs["temporal"] == "forecast"
        self._spares = knobs["branch_skip"] == "attention"
        self._gains: list[float] = []
        values = target.noise[0, target.prompt_frames :].numel()
        self._stride = max(1, values // SAMPLES)
        computing = [[SkipAction.NONE] * self._steps] * self._layers
        self.goal = self.walk(computing, {})[0]
        """The end without skips, as :meth:`seen`."""

    def seen(self, state: Tensor) -> Tensor:
        """Values of the new speech that stand for a state, (values,): the prompt's frames are overwritten."""
        return state[0, self._target.prompt_frames :].float().flatten()[:: self._stride].cpu()

    def walk(self, rows: Rows, changes: Mapping[int, Sequence[Change]]) -> tuple[Tensor, dict[Change, Tensor]]:
        """The end under ``rows``, and the estimated movement of the end by each of the ``changes``, by step."""
        moved: dict[Change, Tensor] = {}
        late: dict[Change, LayerMemory] = {}
        """What the layers of earlier changes would remember now."""
        state = self._target.noise
        memory = [LayerMemory() for _ in range(self._layers)]
        for at in range(self._steps):
            step, memory = self._taken(rows, at, state, memory)
            for change in [one for one in late if rows[one.layer][at] is SkipAction.NONE]:
                del late[change]
            for change, own in late.items():
                difference, late[change] = self._measured(rows, at, step, change, own)
                moved[change] += self._gain(at) * difference
            for change in changes.get(at, ()):
                own = step.before[change.layer]
                difference, late[change] = self._measured(rows, at, step, change, own)
                moved[change] = self._gain(at) * difference
            state = step.following
        return self.seen(state), moved

    def find_gains(self) -> None:
        """Measure how far a small movement of the state comes, from the end of each step to that of the last."""
        computing = [[SkipAction.NONE] * self._steps] * self._layers
        state, memory = self._target.noise, [LayerMemory() for _ in range(self._layers)]
        other: Tensor | None = None
        lengths = []
        for at in range(self._steps):
            step, memory = self._taken(computing, at, state, memory)
            if other is not None:
                evaluated = self._backbone.evaluate(other, at, self._target.run)
                other = self._target.follow(other, self._target.guide(evaluated), at)
                self._work.done(self._layers)
            elif at == 1:
                middle = Change(self._layers // 2, at, SkipAction.TS)
                other = self._changed(computing, at, step, middle, step.before[middle.layer])[0]
            state = step.following
            lengths.append(0.0 if other is None else (self.seen(other) - self.seen(state)).norm().item())
        first = next((one for one in lengths if one), 1.0)
        self._gains = [lengths[-1] / (one or first) for one in lengths]

    # --- Parts --------------------------------------------------------------------------------------------------------
    def _gain(self, at: int) -> float:
        return self._gains[at] if self._gains else 1.0

    def _taken(self, rows: Rows, at: int, state: Tensor, before: list[LayerMemory]) -> tuple[_Step, list[LayerMemory]]:
        """A step under ``rows``, and what the layers remember after it."""
        after = [_copied(one) for one in before]
        entered = hidden = self._backbone.enter(state, self._target.run)
        inputs = []
        for layer in range(self._layers):
            inputs.append(hidden)
            plan = self._plan(rows[layer], at, after[layer])
            hidden = self._backbone.layer(layer, hidden, at, self._target.run, plan, after[layer])
        left = self._backbone.leave(hidden, entered, at, self._target.run)
        following = self._target.follow(state, self._target.guide(left), at)
        self._work.done(self._layers)
        return _Step(state, following, entered, inputs, before), after

    def _measured(
        self, rows: Rows, at: int, step: _Step, change: Change, memory: LayerMemory
    ) -> tuple[Tensor, LayerMemory]:
        """How far the next state moves, and what the layer then remembers."""
        following, after = self._changed(rows, at, step, change, memory)
        return self.seen(following) - self.seen(step.following), after

    def _changed(
        self, rows: Rows, at: int, step: _Step, change: Change, memory: LayerMemory
    ) -> tuple[Tensor, LayerMemory]:
        """The next state under the changed row of the layer, which remembers ``memory``."""
        layer, row = change.layer, rows[change.layer]
        own = [*row[: change.step], change.action, *row[change.step + 1 :]]
        after, run = _copied(memory), self._target.run
        hidden = self._backbone.layer(layer, step.inputs[layer], at, run, self._plan(own, at, after), after)
        for above in range(layer + 1, self._layers):
            plan = self._plan(rows[above], at, step.before[above], keeps=False)
            hidden = self._backbone.layer(above, hidden, at, run, plan, step.before[above], in_place=True)
        left = self._backbone.leave(hidden, step.entered, at, run)
        self._work.done(self._layers - layer)
        return self._target.follow(step.state, self._target.guide(left), at), after

    def _plan(self, row: Sequence[SkipAction], at: int, memory: LayerMemory, keeps: bool = True) -> LayerPlan:
        """The plan of a layer's modules at a step; with ``keeps``, everything that a later skip could need is kept."""
        factor = extrapolation_factors(row[: at + 1], self._times)[at] if self._forecasts else 0.0

        def module(action: SkipAction, known: bool) -> ModulePlan:
            kept = keeps and action is not SkipAction.TS
            every = kept and action is SkipAction.NONE and self._target.branches > 1
            return ModulePlan(action, kept, every, kept and self._forecasts and known, factor)

        known = memory.attention.output is not None
        action = row[at]
        spared = SkipAction.NONE if self._spares and action is SkipAction.BS else action
        return LayerPlan(module(action, known), module(spared, known))


def changes_of(rows: Rows, candidates: Sequence[SkipAction], restoring: bool) -> Iterator[Change]:
    """The changes that save operations and, with ``restoring``, those that cost some. Nothing is cached at step 0."""
    for layer, row in enumerate(rows):
        for step, action in enumerate(row):
            for other in (*candidates, *([SkipAction.NONE] if restoring else [])):
                saves = _SAVING[other] > _SAVING[action]
                if step and other is not action and (saves or restoring):
                    yield Change(layer, step, other)


_SAVING = {SkipAction.NONE: 0, SkipAction.BS: 1, SkipAction.TS: 2}
"""Order of what actions save."""


def _copied(memory: LayerMemory) -> LayerMemory:
    return LayerMemory(replace(memory.attention), replace(memory.feed_forward))
