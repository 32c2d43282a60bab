"""How a layer's modules compute, reuse or share their output: what a strategy table's actions do inside a backbone.

Facts: DiTReducio paper, section 3.2; official code: module outputs are cached *before* the AdaLN gate, so that the
gate is always that of the current step. The residual between branches is that of the last step that computed all of
them, however many skips follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.models.base import OperationCounts
from engine.sampling.forecasting import reaches
from engine.techniques.ditreducio.table import Action, StrategyTable


@dataclass(frozen=True)
class Duty:
    """What a module does at one step and what later steps need of it."""

    action: Action = Action.NONE
    keep_output: bool = False
    keep_residual: bool = False
    keep_change: bool = False
    """Whether a later step forecasts from how far the output has come since it was last kept."""
    reach: float = 0.0
    """How much further a skipped output is taken to have come, in units of that change; 0 reuses it as it is."""


@dataclass(frozen=True)
class LayerDuty:
    """What both modules of a layer do at one step."""

    attention: Duty = Duty()
    feed_forward: Duty = Duty()


COMPUTE = LayerDuty()
"""Compute everything, keep nothing: no later step skips."""


@dataclass
class ModuleMemory:
    """What one module keeps between steps. ``output`` is (branches·batch, frames, width), branch-major; ``residual``
    holds the branches after the first, less the first; ``change`` is the output less the one kept before it."""

    output: Tensor | None = None
    residual: Tensor | None = None
    change: Tensor | None = None

    def keep(self, output: Tensor, with_change: bool) -> None:
        """Keep a new output."""
        self.change = output - self.output if with_change else None
        self.output = output

    def recalled(self, reach: float) -> Tensor:
        """The output as a skip takes it to be by now."""
        return torch.add(self.output, self.change, alpha=reach) if reach else self.output


@dataclass
class LayerMemory:
    """What one layer keeps between steps."""

    attention: ModuleMemory = field(default_factory=ModuleMemory)
    feed_forward: ModuleMemory = field(default_factory=ModuleMemory)


class SkipPlan:
    """For every step and layer its duty, with no write that nothing reads."""

    def __init__(self, table: StrategyTable) -> None:
        """The plan of a strategy table."""
        forecasts = table.temporal == "forecast"
        layers = []
        for row in table.actions:
            attention = feed_forward = _duties(row, reaches(row, table.times) if forecasts else None)
            if table.branch_skip == "attention":
                spared = [Action.NONE if action is Action.BS else action for action in row]
                feed_forward = _duties(spared, reaches(spared, table.times) if forecasts else None)
            layers.append([LayerDuty(*pair) for pair in zip(attention, feed_forward, strict=True)])
        self._duties = tuple(zip(*layers, strict=True))

    @classmethod
    def by_module(cls, attention: Sequence[Action], feed_forward: Sequence[Action], layers: int) -> SkipPlan:
        """The plan in which all layers do the same and the two modules differ: one action a step for each."""
        plan = cls.__new__(cls)
        columns = zip(_duties(attention), _duties(feed_forward), strict=True)
        plan._duties = tuple((LayerDuty(*pair),) * layers for pair in columns)
        return plan

    def at(self, step: int) -> tuple[LayerDuty, ...]:
        """The duties of all layers at ``step``."""
        return self._duties[step]

    def operations(self, step: int, counts: OperationCounts) -> float:
        """What the evaluation at ``step`` costs under the plan, where a whole one costs ``counts``."""
        spent = counts.branches * counts.fixed
        for duty in self._duties[step]:
            spent += _rows(duty.attention, counts.branches) * counts.attention
            spent += _rows(duty.feed_forward, counts.branches) * counts.feed_forward
        return spent


def _rows(duty: Duty, branches: int) -> int:
    """For how many branches a module is computed."""
    return {Action.NONE: branches, Action.BS: 1, Action.TS: 0}[duty.action]


def _duties(row: Sequence[Action], reach: Sequence[float] | None = None) -> tuple[Duty, ...]:
    """``reach`` is that of every skip, where skips forecast."""
    duties: list[Duty] = []
    keep_next = False
    for step in reversed(range(len(row))):
        action, later = row[step], row[step + 1 :]
        keeps_residual = False
        for following in later:
            if following is Action.NONE:
                break
            keeps_residual |= following is Action.BS
        reused = bool(later) and later[0] is Action.TS and action is not Action.TS
        keeps_change = reused and reach is not None and reach[step + 1] != 0
        # What a change is counted from must have been kept as well.
        keeps_output = action is not Action.TS and (reused or keep_next)
        if action is not Action.TS:
            keep_next = keeps_change
        further = reach[step] if reach is not None and action is Action.TS else 0.0
        duties.append(Duty(action, keeps_output, keeps_residual and action is Action.NONE, keeps_change, further))
    return tuple(reversed(duties))


def residual(output: Tensor, branches: int) -> Tensor:
    """The branches after the first, less the first: (branches - 1, batch, frames, width)."""
    rows = output.unflatten(0, (branches, -1))
    return rows[1:] - rows[:1]


def advance(
    hidden: Tensor,
    gate: Tensor,
    module: Callable[[Tensor], Tensor],
    duty: Duty,
    memory: ModuleMemory | None,
    branches: int,
    in_place: bool = False,
    add_to: Callable[[Tensor, Tensor], None] | None = None,
) -> Tensor:
    """``hidden + gate * output`` where ``output`` is the module's for all branches, as ``duty`` says.

    ``hidden`` is (branches·batch, frames, width), branch-major, and is overwritten when ``in_place``; ``module`` maps
    any number of its leading rows. The memory of a step that keeps nothing is left as it was. ``add_to``, where there
    is one, adds ``gate * output`` to ``hidden`` by itself: that serves where nobody needs the output.
    """
    if add_to is not None and in_place and duty == Duty():
        add_to(hidden, gate)
        return hidden
    if duty.action is Action.TS:
        output = memory.recalled(duty.reach)
        return hidden.addcmul_(gate, output) if in_place else torch.addcmul(hidden, gate, output)
    if duty.action is Action.NONE or branches == 1:
        output = module(hidden)
        if duty.keep_residual:
            memory.residual = residual(output, branches)
        if duty.keep_output:
            memory.keep(output, duty.keep_change)
        return hidden.addcmul_(gate, output) if in_place else torch.addcmul(hidden, gate, output)
    first = module(hidden[: len(hidden) // branches])
    result = hidden if in_place else hidden.clone()
    if duty.keep_output:
        output = first.new_empty(result.shape)
        outputs = output.unflatten(0, (branches, -1))
        outputs[0] = first
        torch.add(first, memory.residual, out=outputs[1:])
        memory.keep(output, duty.keep_change)
        return result.addcmul_(gate, output)
    rows = result.unflatten(0, (branches, -1))
    rows.addcmul_(gate, first)
    rows[1:].addcmul_(gate, memory.residual)
    return result
