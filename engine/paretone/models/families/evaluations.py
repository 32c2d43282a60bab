"""The evaluations of one passage, as a plan has them made, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from paretone.errors import SettingError
from paretone.models.base import Voice
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.sampling.evaluating import Evaluated, Evaluator, Run
from paretone.sampling.flow import Combine
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan

_ROUNDED = 1 - 1e-9
"""Sums of operations differ by less than this share through rounding."""


@dataclass(frozen=True)
class Phase:
    """Evaluations that share their branches, from number ``first`` on."""

    first: int
    run: Run
    options: Values
    counts: OperationCounts
    """Operations of one whole evaluation."""


class Evaluations:
    """Called with a state and the number of the evaluation, it gives the velocity to follow."""

    def __init__(
        self,
        evaluator: Evaluator,
        phases: Sequence[Phase],
        guided: Callable[[Tensor, Values], Tensor],
        combining: Callable[[Combine], Combine] | None = None,
    ) -> None:
        """``phases`` in their order; ``guided`` combines the branches under a phase's options, and ``combining``
        changes how."""
        self._evaluator, self._phases, self._guided = evaluator, phases, guided
        self.combine: Combine = self._own if combining is None else combining(self._own)
        """From the branches that ran to the velocity to follow."""
        self.operations: list[float] = []
        """Operations of each evaluation."""
        self.shares: list[float] = []
        """The same over what it would have cost whole, with all branches."""
        self._full = phases[0].counts.evaluation
        """Operations of a whole evaluation with all branches."""
        self._whole: list[float] = []
        """What each would have cost whole, with its own branches."""

    def __call__(self, state: Tensor, evaluation: int) -> Tensor:
        phase = self.phase(evaluation)
        velocities = self._evaluator.velocities(state, evaluation, phase.run)
        self._count(evaluation, phase.counts)
        return self.combine(velocities, evaluation)

    def _own(self, velocities: Tensor, evaluation: int) -> Tensor:
        """The model's own combination."""
        return self._guided(velocities, self.phase(evaluation).options)

    def _count(self, evaluation: int, counts: OperationCounts) -> None:
        """Count a finished evaluation, which would cost ``counts`` whole."""
        self.operations.append(self._evaluator.operations(evaluation, counts))
        self.shares.append(self.operations[-1] / self._full)
        self._whole.append(counts.evaluation)

    @property
    def saved(self) -> frozenset[str]:
        """Parts of the plan that saved operations: ``skipping`` within evaluations, ``guidance`` whole branches."""
        spent, whole, full = sum(self.operations), sum(self._whole), len(self._whole) * self._full
        found = {"skipping": spent < _ROUNDED * whole, "guidance": whole < _ROUNDED * full}
        return frozenset(part for part, saves in found.items() if saves)

    def phase(self, evaluation: int) -> Phase:
        """The phase that an evaluation belongs to."""
        return next(one for one in reversed(self._phases) if one.first <= evaluation)


@dataclass(frozen=True)
class Stage:
    """A synthesis about to begin: what the part that makes its evaluations is given; see
    :attr:`paretone.setting.plan.FlowPlan.evaluator`."""

    plan: FlowPlan
    backbone: Evaluated
    title: str
    """The model's."""
    voice: Voice
    memory: dict[str, Any]
    """State that techniques keep with the loaded model between syntheses, each under the name of its module."""
    sample: Callable[[str, Evaluator], Tensor]
    """Samples the first passage of a text under the plan with this evaluator, and gives the last state."""
    status: Callable[[str], None] = lambda text: None

    @property
    def layered(self) -> DiffusionTransformer:
        """The backbone as one whose layers can be skipped. Raises :class:`SettingError` if it is none."""
        return require_layers(self.backbone, self.title)


def require_layers(backbone: Evaluated, title: str) -> DiffusionTransformer:
    """``backbone`` as one whose layers can be looked at and skipped. Raises :class:`SettingError` with the model's
    ``title`` if it is none."""
    if not isinstance(backbone, DiffusionTransformer):
        raise SettingError(
            f"{title} is not a diffusion transformer: skipping layers, caches and attention views need F5-TTS or "
            "MegaTTS 3."
        )
    return backbone
