"""DiTReducio calibrated for the end of the trajectory: ours, with the paper's actions, table and evaluation.

The paper accepts a skip by how much it changes the output of that step. The audible result is the last state. A change
of an output reaches it scaled by the step length and by the later steps, and adds to the changes of other skips, in
their direction or against it. Here skips are chosen by their effect on the last state, under a budget of operations:

1. One perturbed run measures the gain of a change from each step to the end.
2. Every change of a cell that saves operations is measured on the trajectory under the current table: the change of the
   next state, and of later states that reuse the cell's output.
3. Changes are chosen in turn, each with the least growth of the squared distance of the end per operation saved, until
   the round's share of the budget is saved. Changes add as vectors: one may be chosen because it cancels another.
4. The trajectory is run again, which gives the true end, and the next round starts from there.
5. Final rounds exchange: cells are computed again where that helps most, and others skip. An exchange without
   improvement is dropped, and ends the search.

Sentences that are calibrated together have equal weights: their mean squared distance counts. Measurements:
``resources/docs/ditreducio-improved.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from paretone.errors import PlainError
from paretone.observer import Observer, Work
from paretone.sampling.actions import SkipAction, extrapolation_factors
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.operations import OperationCounts
from paretone.sampling.skipping import LayerMemory, LayerPlan, ModulePlan
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.record import END, CalibrationRecord, Trial
from paretone.techniques.ditreducio.table import StrategyTable

ROUNDS = 6
"""Rounds that save the budget, in equal parts."""
EXCHANGES = 4
"""Most rounds of exchange."""
EXCHANGED = 0.06
"""Share of all operations that a round of exchange restores."""
_ROUNDING = 1e-9


def calibrate_end(
    targets: Sequence[CalibrationTarget],
    counts: OperationCounts,
    knobs: Values,
    observer: Observer,
    rounds: int = ROUNDS,
    exchanges: int = EXCHANGES,
) -> CalibrationRecord:
    """Calibrate a table on ``targets``, sentences of one model under one setting, with evaluations of ``counts``
    operations. The knob ``operations`` is the budget in %. Raises :class:`PlainError` if errors are not finite."""
    first = targets[0]
    layers, steps = first.backbone.layers, first.steps
    candidates = (SkipAction.TS, SkipAction.BS) if first.branches > 1 else (SkipAction.TS,)
    work = Work(observer, len(targets) * end_units(layers, steps, len(candidates), rounds + exchanges))
    search = _Search(counts, knobs, layers, steps, [EndPath(target, knobs, work) for target in targets], candidates)
    budget = float(knobs["operations"]) / 100
    observer.status("How far does a movement come until the end?")
    for path in search.paths:
        path.find_gains()
    trials: list[Trial] = []

    def tell(chosen: Sequence[tuple[Change, float]]) -> None:
        for change, error in chosen:
            if not math.isfinite(error):
                raise PlainError(
                    f"The model produced invalid numbers (NaN) at step {change.step + 1}, layer {change.layer + 1}; "
                    "use more steps or less guidance, or download the checkpoint again."
                )
            trials.append(Trial(END, change.step, change.layer, change.action, error, True))
            observer.report("trial", trials[-1])

    for number in range(rounds):
        observer.status(f"Choosing skips, round {number + 1} of {rounds}")
        tell(search.save(1 - (1 - budget) * (number + 1) / rounds))
    tell(search.reach(budget))
    best, distance = search.rows, search.distance()
    for number in range(exchanges):
        observer.status(f"Exchanging skips, round {number + 1} of {exchanges}: distance {distance:.4f}")
        chosen = search.exchange(budget)
        found = search.distance()
        if found >= distance or search.share > budget + _ROUNDING:
            break
        best, distance = search.rows, found
        tell(chosen)
    work.finish()
    words = f"calibrated for the end at {knobs['operations']:g} % of the operations"
    if len(targets) > 1:
        words += f" on {len(targets)} sentences"
    actions = tuple(map(tuple, best))
    table = StrategyTable(first.compatibility, actions, str(knobs["branch_skip"]), words, str(knobs["temporal"]))
    unknown = np.full((layers, steps), np.nan)
    return CalibrationRecord(table, knobs, math.inf, tuple(trials), unknown, combine="mean")


def end_units(layers: int, steps: int, candidates: int = 2, rounds: int = ROUNDS + EXCHANGES) -> int:
    """Approximate number of layer evaluations for one sentence: fewer if exchanges end early."""
    return 3 * steps * layers + rounds * (steps * layers + (steps - 1) * candidates * layers * (layers + 1) // 2)


@dataclass
class _Measured:
    """Effects of changes on the end: ``vectors`` (changes, values) and their savings as shares of all operations."""

    changes: list[Change]
    vectors: Tensor
    savings: Tensor


class _Search:
    """The current table, and the distance of its end."""

    def __init__(
        self,
        counts: OperationCounts,
        knobs: Values,
        layers: int,
        steps: int,
        paths: Sequence[EndPath],
        candidates: Sequence[SkipAction],
    ) -> None:
        self.paths, self._candidates = paths, candidates
        self.rows: list[list[SkipAction]] = [[SkipAction.NONE] * steps for _ in range(layers)]
        one = counts.attention + counts.feed_forward
        both = knobs["branch_skip"] == "both"
        spent = one if both else counts.attention + counts.branches * counts.feed_forward
        costs = {SkipAction.NONE: counts.branches * one, SkipAction.BS: spent, SkipAction.TS: 0.0}
        self._costs = {action: cost / (steps * counts.evaluation) for action, cost in costs.items()}
        self._distance: float | None = 0.0

    @property
    def share(self) -> float:
        """Operations under the table over those without it."""
        return 1 - sum(self._costs[SkipAction.NONE] - self._costs[action] for row in self.rows for action in row)

    def distance(self) -> float:
        """Root mean squared distance of the end from the end without skips."""
        if self._distance is None:
            self._distance = self._difference([path.walk(self.rows, {})[0] for path in self.paths]).norm().item()
        return self._distance

    def save(self, share: float) -> list[tuple[Change, float]]:
        """Skip more until the operations are down to ``share``; return the changes with predicted distances."""
        end, measured = self._measure(restoring=False)
        return self._choose(end, measured, self.share - share)[0]

    def exchange(self, share: float) -> list[tuple[Change, float]]:
        """Restore cells where that helps most, and skip others until the operations are down to ``share``."""
        end, measured = self._measure(restoring=True)
        restored, end = self._choose(end, measured, -EXCHANGED)
        touched = {(change.layer, change.step) for change, _ in restored}
        chosen, _ = self._choose(end, measured, self.share - share, touched)
        return [*restored, *chosen, *self.reach(share)]

    def reach(self, share: float) -> list[tuple[Change, float]]:
        """Skip more after a round that fell short, because it excludes the neighbours of a change."""
        found: list[tuple[Change, float]] = []
        while self.share > share + _ROUNDING and (chosen := self.save(share)):
            found += chosen
        return found

    def _measure(self, restoring: bool) -> tuple[Tensor, _Measured]:
        """Difference of the end under the table, (values,), and the effect of every change on it."""
        changes = list(changes_of(self.rows, self._candidates, restoring))
        by_step: dict[int, list[Change]] = {}
        for change in changes:
            by_step.setdefault(change.step, []).append(change)
        ends, moved = zip(*(path.walk(self.rows, by_step) for path in self.paths), strict=True)
        end = self._difference(ends)
        vectors = end.new_zeros(len(changes), len(end))
        for row, change in enumerate(changes):
            vectors[row] = self._joined([one[change] for one in moved])
        savings = [self._costs[self.rows[one.layer][one.step]] - self._costs[one.action] for one in changes]
        return end, _Measured(changes, vectors, torch.tensor(savings, dtype=torch.float32))

    def _difference(self, ends: Sequence[Tensor]) -> Tensor:
        return self._joined([end - path.goal for end, path in zip(ends, self.paths, strict=True)])

    def _joined(self, differences: Sequence[Tensor]) -> Tensor:
        """Differences of all sentences as one vector whose norm is their root mean square."""
        return torch.cat([one / math.sqrt(len(one) * len(differences)) for one in differences])

    def _choose(
        self, end: Tensor, measured: _Measured, wanted: float, touched: set[tuple[int, int]] | None = None
    ) -> tuple[list[tuple[Change, float]], Tensor]:
        """Choose changes until they save ``wanted`` (or, if negative, cost it), excluding cells next in time to a
        chosen one, whose measurements no longer hold. Return them with predicted distances, and the predicted end."""
        sign = 1.0 if wanted > 0 else -1.0
        blocked = torch.zeros(len(measured.changes), dtype=torch.bool)
        for layer, step in touched or ():
            self._block(measured, blocked, layer, step)
        blocked |= measured.savings * sign <= 0
        squares, chosen, left = measured.vectors.square().sum(1), [], wanted * sign
        while left > _ROUNDING and not blocked.all():
            growth = 2 * (measured.vectors @ end) + squares
            # Saving: least growth per operation. Restoring: greatest reduction per operation.
            rating = growth / measured.savings.abs()
            rating[blocked] = math.inf
            at = int(rating.argmin())
            if math.isinf(rating[at]) or (sign < 0 and growth[at] >= 0):
                break
            change = measured.changes[at]
            self.rows = [list(row) for row in self.rows]
            self.rows[change.layer][change.step] = change.action
            end = end + measured.vectors[at]
            left -= float(measured.savings[at]) * sign
            self._block(measured, blocked, change.layer, change.step)
            chosen.append((change, end.norm().item()))
        self._distance = None
        return chosen, end

    def _block(self, measured: _Measured, blocked: Tensor, layer: int, step: int) -> None:
        for at, one in enumerate(measured.changes):
            if one.layer == layer and abs(one.step - step) <= 1:
                blocked[at] = True


Rows = Sequence[Sequence[SkipAction]]
"""``rows[layer][step]``."""
SAMPLES = 8192
"""Most values of a state that represent it."""


class Change(NamedTuple):
    layer: int
    step: int
    action: SkipAction


@dataclass
class _Step:
    """Data of one step from which its changes are evaluated."""

    state: Tensor
    following: Tensor
    """The next state."""
    entered: Tensor
    inputs: list[Tensor]
    before: list[LayerMemory]
    """Memory of the layers at the start of the step."""


class EndPath:
    """Trajectory of one sentence. States are (1, frames, bands)."""

    def __init__(self, target: CalibrationTarget, knobs: Values, work: Work) -> None:
        self._target, self._work = target, work
        self._backbone = target.backbone
        self._layers, self._steps = target.backbone.layers, target.steps
        self._times = target.times.tolist()
        self._forecasts = knobs["temporal"] == "forecast"
        self._spares = knobs["branch_skip"] == "attention"
        self._gains = [1.0] * self._steps
        self._stride = max(1, target.noise[0, target.prompt_frames :].numel() // SAMPLES)
        computing = [[SkipAction.NONE] * self._steps] * self._layers
        self.goal = self.walk(computing, {})[0]
        """End without skips, as by :meth:`seen`."""

    def seen(self, state: Tensor) -> Tensor:
        """Sample of a state, (values,), without the prompt's frames, which are overwritten."""
        return state[0, self._target.prompt_frames :].float().flatten()[:: self._stride].cpu()

    def walk(self, rows: Rows, changes: Mapping[int, Sequence[Change]]) -> tuple[Tensor, dict[Change, Tensor]]:
        """The end under ``rows``, and the estimated effect on it of each of the ``changes``, by step."""
        moved: dict[Change, Tensor] = {}
        late: dict[Change, LayerMemory] = {}
        """Memories of the layers under earlier changes."""
        state = self._target.noise
        memory = [LayerMemory() for _ in range(self._layers)]
        for at in range(self._steps):
            step, memory = self._taken(rows, at, state, memory)
            state, following = step.following, self.seen(step.following)
            late = {one: own for one, own in late.items() if rows[one.layer][at] is not SkipAction.NONE}
            for change in (*late, *changes.get(at, ())):
                before = late.get(change, step.before[change.layer])
                changed, late[change] = self._changed(rows, at, step, change, before)
                moved[change] = moved.get(change, 0.0) + self._gains[at] * (self.seen(changed) - following)
        return self.seen(state), moved

    def find_gains(self) -> None:
        """Measure the gain of a small change of the state from the end of each step to that of the last."""
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
    def _taken(self, rows: Rows, at: int, state: Tensor, before: list[LayerMemory]) -> tuple[_Step, list[LayerMemory]]:
        """Take a step under ``rows``; return it and the memories after it."""
        after = [_copied(one) for one in before]
        entered = hidden = self._backbone.enter(state, at, self._target.run)
        inputs = []
        for layer in range(self._layers):
            inputs.append(hidden)
            plan = self._plan(rows[layer], at, after[layer])
            hidden = self._backbone.layer(layer, hidden, at, self._target.run, plan, after[layer])
        left = self._backbone.leave(hidden, entered, at, self._target.run)
        following = self._target.follow(state, self._target.guide(left), at)
        self._work.done(self._layers)
        return _Step(state, following, entered, inputs, before), after

    def _changed(
        self, rows: Rows, at: int, step: _Step, change: Change, memory: LayerMemory
    ) -> tuple[Tensor, LayerMemory]:
        """Next state under the changed row of the layer, starting from ``memory``."""
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
        """Plan of a layer's modules at a step; with ``keeps``, store everything that a later skip could need."""
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
    """Changes that save operations and, with ``restoring``, also those that cost some. Nothing is cached at step 0."""
    for layer, row in enumerate(rows):
        for step, action in enumerate(row):
            for other in (*candidates, *([SkipAction.NONE] if restoring else [])):
                saves = _SAVING[other] > _SAVING[action]
                if step and other is not action and (saves or restoring):
                    yield Change(layer, step, other)


_SAVING = {SkipAction.NONE: 0, SkipAction.BS: 1, SkipAction.TS: 2}


def _copied(memory: LayerMemory) -> LayerMemory:
    return LayerMemory(replace(memory.attention), replace(memory.feed_forward))
