"""The evaluations of one passage, as an engagement has them made, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.errors import SettingError
from engine.models.base import OperationCounts
from engine.models.networks.diffusion import DiffusionTransformer
from engine.sampling.caching import Evaluated, Evaluator, FirstBlockCache, Planned, Run, Whole
from engine.sampling.skipping import SkipPlan
from engine.setting.knobs import Values
from engine.techniques.error_curve import ErrorCurve
from engine.techniques.flow_engagement import Engagement


@dataclass(frozen=True)
class Phase:
    """Evaluations that share their branches, from number ``first`` on."""

    first: int
    run: Run
    options: Values
    counts: OperationCounts
    """What one whole evaluation costs."""


class Evaluations:
    """Called with a state and the number of the evaluation, it gives the velocity to follow."""

    def __init__(
        self, evaluator: Evaluator, phases: Sequence[Phase], guided: Callable[[Tensor, Values], Tensor]
    ) -> None:
        """``phases`` in their order; ``guided`` combines the branches under a phase's options."""
        self._evaluator, self._phases, self._guided = evaluator, phases, guided
        self.operations: list[float] = []
        """What each evaluation cost."""
        self.shares: list[float] = []
        """The same over what it would have cost whole, with all branches."""

    def __call__(self, state: Tensor, evaluation: int) -> Tensor:
        phase = self.phase(evaluation)
        velocities = self._evaluator.velocities(state, evaluation, phase.run)
        self.operations.append(self._evaluator.operations(evaluation, phase.counts))
        self.shares.append(self.operations[-1] / self._phases[0].counts.evaluation)
        return self._guided(velocities, phase.options)

    def phase(self, evaluation: int) -> Phase:
        """The phase that an evaluation belongs to."""
        return next(one for one in reversed(self._phases) if one.first <= evaluation)


def evaluator_of(engagement: Engagement, backbone: Evaluated, title: str, curve: ErrorCurve | None) -> Evaluator:
    """How ``engagement`` has the evaluations of one passage made; ``curve`` is there where the error-curve cache is
    engaged. Raises :class:`SettingError` for a backbone that is made of other layers."""
    if engagement.table is not None:
        return Planned(backbone, SkipPlan(engagement.table), engagement.table.layers)
    if curve is not None:
        layers = require_layers(backbone, title).layers
        return Planned(backbone, SkipPlan.by_module(*curve.schedule(engagement.error_threshold), layers), layers)
    if engagement.first_block_threshold is not None:
        return FirstBlockCache(require_layers(backbone, title), engagement.first_block_threshold)
    return Whole(backbone)


def require_layers(backbone: Evaluated, title: str) -> DiffusionTransformer:
    """``backbone`` as one whose layers can be looked at and skipped. Raises :class:`SettingError` with the model's
    ``title`` where it is none."""
    if not isinstance(backbone, DiffusionTransformer):
        raise SettingError(
            f"{title} is not a diffusion transformer: DiTReducio, caches and attention views need F5-TTS or MegaTTS 3."
        )
    return backbone
