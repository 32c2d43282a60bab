"""Evaluators of a sampling run: whole, or by a plan made beforehand. Techniques bring others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor

from paretone.sampling.operations import OperationCounts
from paretone.sampling.skipping import COMPUTE, LayerMemory, LayerPlan, SkipPlan

Probe = Callable[[int, str, Tensor], None]
"""Called with layer, name and value of an intermediate result: ``attention_input``, ``attention``, ``feed_forward``,
``output``."""


class Run(Protocol):
    """State shared by the evaluations of one passage: the result of a backbone's ``begin``."""

    @property
    def branches(self) -> int: ...


class Evaluated(Protocol):
    """A backbone, evaluated whole or by a plan. Synthesis needs no more of it."""

    def velocity(
        self,
        x: Tensor,
        evaluation: int,
        run: Any,
        plans: Sequence[LayerPlan] | None = None,
        memory: Sequence[LayerMemory] | None = None,
        probe: Probe | None = None,
    ) -> Tensor: ...


class Layered(Protocol):
    """A backbone, layer by layer; see :class:`paretone.models.networks.diffusion.DiffusionTransformer`."""

    @property
    def layers(self) -> int: ...

    def enter(self, x: Tensor, run: Any) -> Tensor: ...

    def layer(
        self,
        index: int,
        hidden: Tensor,
        evaluation: int,
        run: Any,
        plan: LayerPlan = COMPUTE,
        memory: LayerMemory | None = None,
        probe: Probe | None = None,
        in_place: bool = False,
    ) -> Tensor: ...

    def leave(self, hidden: Tensor, entered: Tensor, evaluation: int, run: Any) -> Tensor: ...

    def project(self, left: Tensor) -> Tensor: ...


class Evaluator(Protocol):
    """One passage's evaluations, in order: what :attr:`paretone.setting.plan.FlowPlan.evaluator` returns for each."""

    def velocities(self, state: Tensor, evaluation: int, run: Any) -> Tensor:
        """Velocities of all branches of ``run``, (branches, frames, bands), at ``state``, (1, frames, bands)."""

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        """Operations of the finished evaluation, if a whole one costs ``counts``."""


class Whole:
    """Computes everything."""

    def __init__(self, backbone: Evaluated) -> None:
        self._backbone = backbone

    def velocities(self, state: Tensor, evaluation: int, run: Any) -> Tensor:
        return self._backbone.velocity(state, evaluation, run)

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return counts.evaluation


class Planned:
    """Evaluates by a plan."""

    def __init__(self, backbone: Evaluated, plan: SkipPlan, layers: int) -> None:
        self._backbone, self._plan = backbone, plan
        self._memory = [LayerMemory() for _ in range(layers)]

    def velocities(self, state: Tensor, evaluation: int, run: Any) -> Tensor:
        return self._backbone.velocity(state, evaluation, run, self._plan.at(evaluation), self._memory)

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return self._plan.operations(evaluation, counts)


def relative_change(before: Tensor, now: Tensor) -> float:
    """L1 norm of the difference over that of the earlier value."""
    return ((now - before).abs().sum() / before.abs().sum()).item()
