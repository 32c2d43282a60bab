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

from engine.techniques.ditreducio.table import Action, StrategyTable


@dataclass(frozen=True)
class Duty:
    """What a module does at one step and what later steps need of it."""

    action: Action = Action.NONE
    keep_output: bool = False
    keep_residual: bool = False


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
    holds the branches after the first, less the first."""

    output: Tensor | None = None
    residual: Tensor | None = None


@dataclass
class LayerMemory:
    """What one layer keeps between steps."""

    attention: ModuleMemory = field(default_factory=ModuleMemory)
    feed_forward: ModuleMemory = field(default_factory=ModuleMemory)


class SkipPlan:
    """A strategy table made ready: for every step and layer its duty, with no write that nothing reads."""

    def __init__(self, table: StrategyTable) -> None:
        layers = []
        for row in table.actions:
            attention = feed_forward = _duties(row)
            if table.branch_skip == "attention":
                feed_forward = _duties([Action.NONE if action is Action.BS else action for action in row])
            layers.append([LayerDuty(*pair) for pair in zip(attention, feed_forward, strict=True)])
        self._duties = tuple(zip(*layers, strict=True))

    def at(self, step: int) -> tuple[LayerDuty, ...]:
        """The duties of all layers at ``step``."""
        return self._duties[step]


def _duties(row: Sequence[Action]) -> tuple[Duty, ...]:
    duties = []
    for step, action in enumerate(row):
        later = row[step + 1 :]
        keeps_residual = False
        for following in later:
            if following is Action.NONE:
                break
            keeps_residual |= following is Action.BS
        keeps_output = bool(later) and later[0] is Action.TS and action is not Action.TS
        duties.append(Duty(action, keeps_output, keeps_residual and action is Action.NONE))
    return tuple(duties)


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
) -> Tensor:
    """``hidden + gate * output`` where ``output`` is the module's for all branches, as ``duty`` says.

    ``hidden`` is (branches·batch, frames, width), branch-major, and is overwritten when ``in_place``; ``module`` maps
    any number of its leading rows. The memory of a step that keeps nothing is left as it was.
    """
    if duty.action is Action.TS:
        output = memory.output
        return hidden.addcmul_(gate, output) if in_place else torch.addcmul(hidden, gate, output)
    if duty.action is Action.NONE or branches == 1:
        output = module(hidden)
        if duty.keep_residual:
            memory.residual = residual(output, branches)
        if duty.keep_output:
            memory.output = output
        return hidden.addcmul_(gate, output) if in_place else torch.addcmul(hidden, gate, output)
    first = module(hidden[: len(hidden) // branches])
    result = hidden if in_place else hidden.clone()
    if duty.keep_output:
        memory.output = first.new_empty(result.shape)
        outputs = memory.output.unflatten(0, (branches, -1))
        outputs[0] = first
        torch.add(first, memory.residual, out=outputs[1:])
        return result.addcmul_(gate, memory.output)
    rows = result.unflatten(0, (branches, -1))
    rows.addcmul_(gate, first)
    rows[1:].addcmul_(gate, memory.residual)
    return result
