"""Evaluation of the first-block cache: all other layers are skipped while the first one's residual hardly changes.

Combines two sources. FBCache of ParaAttention (github.com/chengzeyi/ParaAttention) compares the first block's residual
with its last value and, if it hardly changed, substitutes the remaining blocks' last residual. TeaCache (Liu et al.,
arXiv 2411.19108) sums such changes until they pass a threshold. Here changes are measured as in FBCache and summed as
in TeaCache, without TeaCache's polynomial, which is fitted to one model's timestep embedding.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from paretone.models.families.evaluations import Stage
from paretone.sampling.flow import Evaluator, Layered, Run, relative_change
from paretone.sampling.operations import OperationCounts


def evaluators(stage: Stage, threshold: float) -> Callable[[], Evaluator]:
    """See :attr:`paretone.setting.plan.FlowPlan.evaluator`."""
    return lambda: FirstBlockCache(stage.layered, threshold)


class FirstBlockCache:
    """Evaluator that computes the layers after the first once the first one's changes sum to ``threshold``."""

    def __init__(self, backbone: Layered, threshold: float) -> None:
        self._backbone, self._threshold = backbone, threshold
        self._run: Run | None = None
        self._first: Tensor | None = None
        """Residual of the first layer at the last evaluation."""
        self._rest: Tensor | None = None
        """Residual of the other layers when last computed."""
        self._change = 0.0
        self._skipped: set[int] = set()

    def velocities(self, state: Tensor, evaluation: int, run: Run) -> Tensor:
        entered = self._backbone.enter(state, evaluation, run)
        hidden = self._backbone.layer(0, entered, evaluation, run)
        first = hidden - entered
        if run is self._run and self._first is not None:
            self._change += relative_change(self._first, first)
        self._first = first
        # Values from a run with other branches are useless.
        if run is self._run and self._rest is not None and self._change < self._threshold:
            hidden = hidden + self._rest
            self._skipped.add(evaluation)
        else:
            start = hidden
            for index in range(1, self._backbone.layers):
                hidden = self._backbone.layer(index, hidden, evaluation, run, in_place=index > 1)
            self._rest, self._change = hidden - start, 0.0
        self._run = run
        return self._backbone.project(self._backbone.leave(hidden, entered, evaluation, run))

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        if evaluation not in self._skipped:
            return counts.evaluation
        return counts.branches * (counts.fixed + counts.attention + counts.feed_forward)
