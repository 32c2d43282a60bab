"""How the evaluations of a sampling run come about: whole, by a plan made beforehand, or as a first-block cache decides
while it runs.

The first-block cache follows two sources. FBCache of ParaAttention (github.com/chengzeyi/ParaAttention) compares what
the first block adds to its input with what it added last time, and where that hardly changed puts the remaining blocks'
last residual in their place. TeaCache (Liu et al., arXiv 2411.19108) adds such changes up until they pass a threshold.
Here they are added up as there and measured as in the former; TeaCache's polynomial, which is fitted to one model's
timestep embedding, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from torch import Tensor

from engine.models.base import OperationCounts
from engine.sampling.skipping import LayerMemory, LayerPlan, SkipPlan


class Run(Protocol):
    """What evaluations share: what a backbone's ``begin`` returns."""

    branches: int


class Evaluated(Protocol):
    """A backbone, evaluated whole or by a plan."""

    def velocity(
        self,
        x: Tensor,
        evaluation: int,
        run: Run,
        plans: Sequence[LayerPlan] | None = None,
        memory: Sequence[LayerMemory] | None = None,
    ) -> Tensor: ...


class Layered(Protocol):
    """A backbone, layer by layer; see :class:`engine.models.networks.diffusion.DiffusionTransformer`."""

    layers: int

    def enter(self, x: Tensor, run: Run) -> Tensor: ...

    def layer(self, index: int, hidden: Tensor, evaluation: int, run: Run, *, in_place: bool = False) -> Tensor: ...

    def leave(self, hidden: Tensor, entered: Tensor, evaluation: int, run: Run) -> Tensor: ...

    def project(self, left: Tensor) -> Tensor: ...


class Evaluator(Protocol):
    """One passage's evaluations, in order."""

    def velocities(self, state: Tensor, evaluation: int, run: Run) -> Tensor:
        """Those of all branches of ``run``, (rows, frames, bands)."""

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        """What this evaluation, which is over, cost, where a whole one costs ``counts``."""


class Whole:
    """Everything is computed."""

    def __init__(self, backbone: Evaluated) -> None:
        self._backbone = backbone

    def velocities(self, state: Tensor, evaluation: int, run: Run) -> Tensor:
        return self._backbone.velocity(state, evaluation, run)

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return counts.evaluation


class Planned:
    """What is computed stands in a plan."""

    def __init__(self, backbone: Evaluated, plan: SkipPlan, layers: int) -> None:
        self._backbone, self._plan = backbone, plan
        self._memory = [LayerMemory() for _ in range(layers)]

    def velocities(self, state: Tensor, evaluation: int, run: Run) -> Tensor:
        return self._backbone.velocity(state, evaluation, run, self._plan.at(evaluation), self._memory)

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return self._plan.operations(evaluation, counts)


class FirstBlockCache:
    """The layers after the first are computed once the first one's changes have added up to ``threshold``."""

    def __init__(self, backbone: Layered, threshold: float) -> None:
        self._backbone, self._threshold = backbone, threshold
        self._run: Run | None = None
        self._first: Tensor | None = None
        """What the first layer added to its input at the last evaluation."""
        self._rest: Tensor | None = None
        """What the other layers added to theirs when they were last computed."""
        self._change = 0.0
        self._skipped: set[int] = set()

    def velocities(self, state: Tensor, evaluation: int, run: Run) -> Tensor:
        entered = self._backbone.enter(state, run)
        hidden = self._backbone.layer(0, entered, evaluation, run)
        first = hidden - entered
        if run is self._run:
            self._change += relative_change(self._first, first)
        self._first = first
        # What was kept for other branches is of no use.
        if run is self._run and self._change < self._threshold:
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


def relative_change(before: Tensor, now: Tensor) -> float:
    """The L1 norm of the difference over that of what was before."""
    return ((now - before).abs().sum() / before.abs().sum()).item()


class ChangeMeter:
    """Everything is computed, and how much each kind of module changes from one evaluation to the next is measured.

    :attr:`changes` holds, for every evaluation, the relative L1 change since the one before, mean over the layers;
    infinite at the first, and where the number of branches changed.
    """

    def __init__(self, backbone: Evaluated) -> None:
        self._backbone = backbone
        self._last: dict[tuple[str, int], Tensor] = {}
        self.changes: dict[str, list[float]] = {"attention": [], "feed_forward": []}

    def velocities(self, state: Tensor, evaluation: int, run: Run) -> Tensor:
        found: dict[str, list[float]] = {kind: [] for kind in self.changes}

        def probe(layer: int, name: str, value: Tensor) -> None:
            if name in found:
                before = self._last.get((name, layer))
                comparable = before is not None and before.shape == value.shape
                found[name].append(relative_change(before, value) if comparable else float("inf"))
                self._last[name, layer] = value

        velocity: Callable[..., Tensor] = self._backbone.velocity
        velocities = velocity(state, evaluation, run, probe=probe)
        for kind, values in found.items():
            self.changes[kind].append(sum(values) / len(values))
        return velocities

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return counts.evaluation
