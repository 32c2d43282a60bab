"""Evaluation of the dual block cache: each branch reuses or computes its middle blocks by the rule.

All branches pass the first and the last blocks together; the middle blocks run only for the branches that need them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import factorial

import torch
from torch import Tensor

from paretone.models.families.evaluations import Stage
from paretone.models.networks.diffusion import Conditioning
from paretone.sampling.flow import Evaluator, Layered
from paretone.sampling.operations import OperationCounts
from paretone.techniques.dual_block_cache import Decisions, Rule


def evaluators(stage: Stage, rule: Rule) -> Callable[[], Evaluator]:
    """See :attr:`paretone.setting.plan.FlowPlan.evaluator`."""
    return lambda: DualBlockCache(stage.layered, rule)


class DualBlockCache:
    """Evaluator with a memory per branch; the conditional branch is the first."""

    def __init__(self, backbone: Layered, rule: Rule) -> None:
        self._backbone, self._rule = backbone, rule
        self._branches: list[_Branch] = []
        self._computed: dict[int, int] = {}
        """Number of computed branches, by evaluation."""

    @property
    def reused(self) -> tuple[tuple[int, ...], ...]:
        """Reused evaluations of each branch."""
        return tuple(tuple(one.decisions.reused) for one in self._branches)

    def velocities(self, state: Tensor, evaluation: int, run: Conditioning) -> Tensor:
        rule, layers = self._rule, self._backbone.layers
        middle = range(rule.Fn_compute_blocks, layers - rule.Bn_compute_blocks)
        entered = self._backbone.enter(state, evaluation, run)
        hidden = self._passed(range(middle.start), entered, evaluation, run)
        while len(self._branches) < run.branches:
            self._branches.append(_Branch(rule))
        branches = self._branches[: run.branches]
        added = (hidden - entered).unflatten(0, (run.branches, -1))
        computing = [at for at, one in enumerate(branches) if not one.reuses(evaluation, added[at])]
        self._computed[evaluation] = len(computing)
        rows = hidden.unflatten(0, (run.branches, -1))
        if len(computing) == run.branches:
            after = self._passed(middle, hidden, evaluation, run).unflatten(0, (run.branches, -1))
        else:
            after = torch.empty_like(rows)
            if computing:
                fewer = replace(run, branches=len(computing))  # Each branch has the same mask.
                part = self._passed(middle, rows[computing].flatten(0, 1), evaluation, fewer)
                after[computing] = part.unflatten(0, (len(computing), -1))
        for at, one in enumerate(branches):
            if at in computing:
                one.keep(evaluation, added[at], after[at] - rows[at])
            else:
                torch.add(rows[at], one.recalled(evaluation), out=after[at])
        hidden = self._passed(range(middle.stop, layers), after.flatten(0, 1), evaluation, run)
        return self._backbone.project(self._backbone.leave(hidden, entered, evaluation, run))

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        layer = counts.attention + counts.feed_forward
        middle = counts.layers - self._rule.always
        always = counts.branches * (counts.fixed + self._rule.always * layer)
        return always + self._computed[evaluation] * middle * layer

    def _passed(self, layers: range, hidden: Tensor, evaluation: int, run: Conditioning) -> Tensor:
        """``hidden`` after these layers; the input is unchanged."""
        for index in layers:
            hidden = self._backbone.layer(index, hidden, evaluation, run, in_place=index > layers.start)
        return hidden


class _Branch:
    def __init__(self, rule: Rule) -> None:
        self.decisions = Decisions(rule)
        self._order = rule.taylorseer_order
        self._first: Tensor | None = None
        """Residual of the first blocks when the branch was last computed."""
        self._middle: list[Tensor] = []
        """Residual of the middle blocks at that step, and its derivatives by the step."""
        self._at = 0

    def reuses(self, step: int, added: Tensor) -> bool:
        """Whether to reuse the middle blocks at ``step``; ``added`` is the residual of the first blocks."""
        before = self._first
        if before is None:
            return self.decisions.reuses(step, None)
        return self.decisions.reuses(step, lambda: ((before - added).abs().mean() / before.abs().mean()).item())

    def keep(self, step: int, added: Tensor, middle: Tensor) -> None:
        self._first = added
        before, self._middle = self._middle, [middle]
        # As in cache-dit, whose calibrator begins to count at the second step and needs two more.
        if step > 2:
            for earlier in before[: self._order]:
                self._middle.append((self._middle[-1] - earlier) / (step - self._at))
        self._at = step

    def recalled(self, step: int) -> Tensor:
        """Residual of the middle blocks at ``step``: the last value, or its Taylor series."""
        value, *derivatives = self._middle
        for order, derivative in enumerate(derivatives, start=1):
            value = value + derivative * ((step - self._at) ** order / factorial(order))
        return value
