"""How a layer's modules compute, reuse or share their output: what a strategy table's actions do inside a backbone.

Facts: DiTReducio paper, section 3.2; official code: module outputs are cached *before* the AdaLN gate, so that the gate is
always that of the current step. The residual between branches is that of the last step that computed all of them, however
many skips follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

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


def keeping(action: Action, branch_skip: str) -> LayerDuty:
    """The duty of a layer of which any later step may need anything: what ``action`` yields is kept."""
    attention = Duty(action, action is not Action.TS, action is Action.NONE)
    if action is Action.BS and branch_skip == "attention":
        return LayerDuty(attention, Duty(Action.NONE, keep_output=True, keep_residual=True))
    return LayerDuty(attention, attention)


@dataclass
class ModuleMemory:
    """What one module keeps between steps. ``output`` is (branches·batch, frames, width), branch-major; ``residual`` holds
    the branches after the first, less the first."""

    output: Tensor | None = None
    residual: Tensor | None = None


@dataclass
class LayerMemory:
    """What one layer keeps between steps."""

    attention: ModuleMemory = field(default_factory=ModuleMemory)
    feed_forward: ModuleMemory = field(default_factory=ModuleMemory)

    def copy(self) -> LayerMemory:
        """A memory of its own that holds the same tensors (which are never written in place)."""
        return LayerMemory(replace(self.attention), replace(self.feed_forward))


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


def advance(
    hidden: Tensor,
    gate: Tensor,
    module: Callable[[Tensor], Tensor],
    duty: Duty,
    memory: ModuleMemory | None,
    branches: int,
) -> Tensor:
    """``hidden + gate * output`` where ``output`` is the module's for all branches, as ``duty`` says.

    ``hidden`` is (branches·batch, frames, width), branch-major; ``module`` maps any number of its leading rows. The memory
    of a step that keeps nothing is left as it was.
    """
    if duty.action is Action.TS:
        # ``hidden`` may hold several candidates side by side (see calibration), the memory serves each of them.
        return torch.addcmul(hidden.unflatten(0, (-1, len(memory.output))), gate, memory.output).flatten(0, 1)
    if duty.action is Action.NONE or branches == 1:
        output = module(hidden)
        if duty.keep_residual:
            memory.residual = _residual(output, branches)
    else:
        output = _spread(module(hidden[: len(hidden) // branches]), memory.residual)
    if duty.keep_output:
        memory.output = output
    return torch.addcmul(hidden, gate, output)


def _residual(output: Tensor, branches: int) -> Tensor:
    rows = output.unflatten(0, (branches, -1))
    return rows[1:] - rows[:1]


def _spread(first: Tensor, residual: Tensor) -> Tensor:
    """All branches from the first one and the others' residuals."""
    output = first.new_empty(len(residual) + 1, *first.shape)
    output[0] = first
    torch.add(first, residual, out=output[1:])
    return output.flatten(0, 1)
