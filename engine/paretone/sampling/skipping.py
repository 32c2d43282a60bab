"""Skip actions inside a backbone: a layer's modules compute, reuse or share their output.

Facts: DiTReducio paper, section 3.2; official code: module outputs are cached *before* the AdaLN gate, so that the gate
is always that of the current step. The residual between branches is from the last step that computed all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeVar

import torch
from torch import Tensor

from paretone.sampling.actions import SkipAction, extrapolation_factors
from paretone.sampling.operations import OperationCounts


@dataclass(frozen=True)
class ModulePlan:
    """Action of a module at one step, and the values to store for later steps."""

    action: SkipAction = SkipAction.NONE
    keep_output: bool = False
    keep_residual: bool = False
    keep_change: bool = False
    """Whether a later step extrapolates from the change between the last two stored outputs."""
    extrapolation_factor: float = 0.0
    """Extrapolation factor of a skipped output, in units of that change; 0 reuses it unchanged."""


@dataclass(frozen=True)
class LayerPlan:
    attention: ModulePlan = ModulePlan()
    feed_forward: ModulePlan = ModulePlan()


COMPUTE = LayerPlan()
"""Compute everything, store nothing: no later step skips."""


Kept = TypeVar("Kept")


@dataclass
class ModuleMemory:
    """Stored values of one module between steps. ``output`` is (branches·batch, frames, width), branch-major;
    ``residual`` holds the further branches minus the first; ``change`` is the output minus the previous."""

    output: Tensor | None = None
    residual: Tensor | None = None
    change: Tensor | None = None

    def keep(self, output: Tensor, with_change: bool) -> None:
        self.change = output - self.kept if with_change else None
        self.output = output

    @property
    def kept(self) -> Tensor:
        """The stored output. Raises :class:`ValueError` if there is none."""
        return _kept(self.output)

    @property
    def kept_residual(self) -> Tensor:
        """The stored residual. Raises :class:`ValueError` if there is none."""
        return _kept(self.residual)

    def recalled(self, extrapolation_factor: float) -> Tensor:
        """Output of a skip: stored or extrapolated. Raises :class:`ValueError` if none was stored."""
        if not extrapolation_factor:
            return self.kept
        return torch.add(self.kept, _kept(self.change), alpha=extrapolation_factor)


@dataclass
class LayerMemory:
    attention: ModuleMemory = field(default_factory=ModuleMemory)
    feed_forward: ModuleMemory = field(default_factory=ModuleMemory)


class SkipPlan:
    """Plans of the modules for every step and layer; stores only values that a later step reads."""

    def __init__(
        self,
        actions: Sequence[Sequence[SkipAction]],
        *,
        spare_feed_forward: bool = False,
        forecast_along: Sequence[float] | None = None,
    ) -> None:
        """``actions[layer][step]``. ``spare_feed_forward`` exempts feed-forward modules from branch skipping (the
        official F5 code of 2026). ``forecast_along`` a grid of times (steps + 1), skipped outputs are forecast."""

        def planned(row: Sequence[SkipAction]) -> tuple[ModulePlan, ...]:
            return _module_plans(row, extrapolation_factors(row, forecast_along) if forecast_along else None)

        layers = []
        for row in actions:
            spared = [SkipAction.NONE if action is SkipAction.BS else action for action in row]
            pairs = zip(planned(row), planned(spared if spare_feed_forward else row), strict=True)
            layers.append([LayerPlan(*pair) for pair in pairs])
        self._module_plans = tuple(zip(*layers, strict=True))

    @classmethod
    def by_module(cls, attention: Sequence[SkipAction], feed_forward: Sequence[SkipAction], layers: int) -> SkipPlan:
        """Plan with equal layers but different modules: one action per step for each module."""
        plan = cls.__new__(cls)
        columns = zip(_module_plans(attention), _module_plans(feed_forward), strict=True)
        plan._module_plans = tuple((LayerPlan(*pair),) * layers for pair in columns)
        return plan

    def at(self, step: int) -> tuple[LayerPlan, ...]:
        return self._module_plans[step]

    def operations(self, step: int, counts: OperationCounts) -> float:
        """Operations of the evaluation at ``step`` under the plan, if a whole one costs ``counts``."""
        spent = counts.branches * counts.fixed
        for plan in self._module_plans[step]:
            spent += _rows(plan.attention, counts.branches) * counts.attention
            spent += _rows(plan.feed_forward, counts.branches) * counts.feed_forward
        return spent


def _rows(plan: ModulePlan, branches: int) -> int:
    """Number of branches for which a module is computed."""
    return {SkipAction.NONE: branches, SkipAction.BS: 1, SkipAction.TS: 0}[plan.action]


def _module_plans(row: Sequence[SkipAction], factors: Sequence[float] | None = None) -> tuple[ModulePlan, ...]:
    """Plans of one module from its actions; ``factors`` of extrapolation per step if skips forecast."""
    plans: list[ModulePlan] = []
    keep_next = False
    for step in reversed(range(len(row))):
        action, later = row[step], row[step + 1 :]
        until_computed = takewhile(lambda one: one is not SkipAction.NONE, later)
        keeps_residual = action is SkipAction.NONE and SkipAction.BS in until_computed
        reused = bool(later) and later[0] is SkipAction.TS and action is not SkipAction.TS
        keeps_change = reused and factors is not None and factors[step + 1] != 0
        # A change is relative to the previous stored output, so that one must be stored as well.
        keeps_output = action is not SkipAction.TS and (reused or keep_next)
        if action is not SkipAction.TS:
            keep_next = keeps_change
        further = factors[step] if factors is not None and action is SkipAction.TS else 0.0
        plans.append(ModulePlan(action, keeps_output, keeps_residual, keeps_change, further))
    return tuple(reversed(plans))


def residual(output: Tensor, branches: int) -> Tensor:
    """Further branches minus the first: (branches - 1, batch, frames, width)."""
    rows = output.unflatten(0, (branches, -1))
    return rows[1:] - rows[:1]


def apply_module(
    hidden: Tensor,
    gate: Tensor,
    module: Callable[[Tensor], Tensor],
    plan: ModulePlan,
    memory: ModuleMemory | None,
    branches: int,
    in_place: bool = False,
    add_to: Callable[[Tensor, Tensor], None] | None = None,
) -> Tensor:
    """Return ``hidden + gate * output``, with the module's output for all branches computed or recalled by ``plan``.
    ``hidden`` is (branches·batch, frames, width), branch-major, and is overwritten when ``in_place``; ``module`` maps
    any number of its leading rows. Without values to store, the memory stays unchanged. ``add_to``, if given, adds
    ``gate * output`` to ``hidden`` in one operation when the output itself is not needed."""
    if add_to is not None and in_place and plan == ModulePlan():
        add_to(hidden, gate)
        return hidden
    if plan.action is SkipAction.TS:
        output = _kept(memory).recalled(plan.extrapolation_factor)
        return hidden.addcmul_(gate, output) if in_place else torch.addcmul(hidden, gate, output)
    if plan.action is SkipAction.NONE or branches == 1:
        output = module(hidden)
        if plan.keep_residual:
            _kept(memory).residual = residual(output, branches)
        if plan.keep_output:
            _kept(memory).keep(output, plan.keep_change)
        return hidden.addcmul_(gate, output) if in_place else torch.addcmul(hidden, gate, output)
    first = module(hidden[: len(hidden) // branches])
    result = hidden if in_place else hidden.clone()
    if plan.keep_output:
        output = first.new_empty(result.shape)
        outputs = output.unflatten(0, (branches, -1))
        outputs[0] = first
        torch.add(first, _kept(memory).kept_residual, out=outputs[1:])
        _kept(memory).keep(output, plan.keep_change)
        return result.addcmul_(gate, output)
    rows = result.unflatten(0, (branches, -1))
    rows.addcmul_(gate, first)
    rows[1:].addcmul_(gate, _kept(memory).kept_residual)
    return result


def _kept(what: Kept | None) -> Kept:
    """Return ``what``. Raises :class:`ValueError` if it is ``None``: the plans of the steps are inconsistent."""
    if what is None:
        raise ValueError("A step reuses an output that no earlier step stored.")
    return what
