"""Static error-curve cache: modules are reused while the sum of their measured changes from step to step is small.

After SmoothCache (Liu et al., arXiv 2411.10510): one ordinary run per sentence measures the changes in the outputs of
each kind of module, and a schedule follows from a threshold; attention and feed-forward have separate schedules, equal
for all layers. Difference: SmoothCache measures the error of a reuse over every distance, here changes from step to
step are summed. The sentences are the catalogue's first, in the voice of the take; the curve is measured once per voice
and trajectory, before the first take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from paretone.figures.glyphs import Mark
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import Values, amount
from paretone.setting.plan import FlowPlan, Part
from paretone.techniques.base import Context, Paper, Technique, require_euler
from paretone.wording import percent

NAME = "error_curve"


@dataclass(frozen=True)
class ErrorCurve:
    """Change of each kind of module's outputs at every step: relative L1 change since the step before, mean over layers
    and sentences; infinite at the first step."""

    attention: tuple[float, ...]
    feed_forward: tuple[float, ...]

    @classmethod
    def mean(cls, curves: Sequence[ErrorCurve]) -> ErrorCurve:
        columns = (zip(*(getattr(one, kind) for one in curves), strict=True) for kind in ("attention", "feed_forward"))
        return cls(*(tuple(map(fmean, column)) for column in columns))

    def schedule(self, threshold: float) -> tuple[tuple[SkipAction, ...], tuple[SkipAction, ...]]:
        """Actions of attention and feed-forward at every step: reuse while changes sum to less than ``threshold``."""
        return _scheduled(self.attention, threshold), _scheduled(self.feed_forward, threshold)


def _scheduled(changes: Sequence[float], threshold: float) -> tuple[SkipAction, ...]:
    actions, sum_of_changes = [], 0.0
    for change in changes:
        sum_of_changes += change
        skips = sum_of_changes < threshold
        actions.append(SkipAction.TS if skips else SkipAction.NONE)
        sum_of_changes = sum_of_changes if skips else 0.0
    return tuple(actions)


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    require_euler(plan.options, "An error curve has one value per Euler step")
    return replace(plan, evaluator=Part.of(f"{__name__}.measuring:evaluators", threshold=float(knobs["threshold"])))


def idle(knobs: Values, plan: FlowPlan) -> str:
    return (
        f"at none of {plan.evaluations} steps had the outputs of a module type changed by less than "
        f"{percent(knobs['threshold'])} since they were computed; raise the threshold, or take more steps"
    )


TECHNIQUE = Technique(
    name=NAME,
    title="Static error-curve cache (SmoothCache-like)",
    summary="Reuses all attention or all feed-forward modules at steps where a plain run showed little change.",
    benefit="Reuses modules at steps where little changes",
    paper=Paper(
        "SmoothCache: A Universal Inference Acceleration Technique for Diffusion Transformers", "arXiv 2411.10510"
    ),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="skipping",
    place=70,
    mark=Mark("orange", "hexagon"),
    knobs=(
        amount(
            "threshold",
            "Threshold",
            "Relative change of a module type's outputs, summed over steps, at which it is computed again.",
            default=0.3,
            between=(0.0, 20.0),
            symbol="α",
            step=0.05,
        ),
    ),
    resolve=resolve,
    describe=lambda knobs: f"modules are reused while their outputs change by less than {percent(knobs['threshold'])}",
    idle=idle,
)
