"""Guidance whose branches are skipped once they have saturated, decided while sampling.

DiTReducio plans branch skipping by a calibration. Here every synthesis monitors the effects of its own guidance. An
effect is reused while its predicted change, from its earlier rate, is small (reuse of guidance as in FasterCache, arXiv
2410.19355, but decided by the change). Or, as in Adaptive Guidance (arXiv 2312.12487), guidance ends once the
velocities of its branches have the same direction. See :mod:`paretone.sampling.branch_guidance`.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.sampling.guidance import Saturation
from paretone.setting.knobs import Choice, Values, amount, count
from paretone.setting.plan import FlowPlan
from paretone.techniques.base import Conflict, Context, Paper, Technique, require_guidance
from paretone.wording import percent

REUSE, END = "reuse", "end"


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    branches = plan.guidance.branches(context.info.guidance.branches(plan.options))
    require_guidance(context, branches, "run one branch from the start: there is none to skip")
    if plan.guidance.steps is not None:
        raise Conflict(
            f"{context.title_in('guidance')} ends guidance at a given step already; do without one of the two.",
            "guidance",
        )
    if "skipping" in context.taken:
        raise Conflict(
            f"{context.title_in('skipping')} keeps what all branches computed, but here their number changes while "
            "sampling; do without one of the two.",
            "skipping",
        )
    if plan.options.get("similarity") == 0:
        raise SettingError(
            "With a similarity of 0 the branch that knows the voice never runs, and the others cannot be skipped; set "
            "one above 0."
        )
    saturation = Saturation(float(knobs["threshold"]), knobs["then"] == REUSE, int(knobs["again"]))
    return replace(plan, guidance=replace(plan.guidance, saturation=saturation))


def idle(knobs: Values, plan: FlowPlan) -> str:
    return (
        f"at none of {plan.evaluations} evaluations was the effect of guidance within the threshold of "
        f"{knobs['threshold']:g}; raise it, or take more steps"
    )


def describe(knobs: Values) -> str:
    if knobs["then"] == END:
        return f"guidance ends once 1 − cosine is below {knobs['threshold']:g}"
    again = f", {knobs['again'] - 1} times at most" if knobs["again"] else ""
    return f"reused until it has changed by {percent(knobs['threshold'])}{again}"


TECHNIQUE = Technique(
    name="saturating_guidance",
    title="Guidance until it saturates",
    summary="Skips a branch as soon as its effect hardly changes, which every synthesis decides while it samples.",
    benefit="Two branches only as long as they differ anew",
    paper=Paper("Adaptive Guidance: Training-free Acceleration of Conditional Diffusion Models", "arXiv 2312.12487"),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="guidance:running",
    place=94,
    mark=Mark("red", "hexagon"),
    knobs=(
        amount(
            "threshold",
            "Threshold",
            "Foreseen change of an effect of guidance since it was last computed, as a share of its size, below which "
            "it is reused; where guidance ends: one minus the cosine of both velocities.",
            default=0.2,
            between=(0.0, 2.0),
            symbol="δ",
            step=0.01,
        ),
        Choice(
            "then",
            "Afterwards",
            "Reuse the last effect of guidance, or let guidance end (Adaptive Guidance).",
            default=REUSE,
            values=(REUSE, END),
            titles=("Reuse its last effect", "No guidance"),
        ),
        count(
            "again",
            "Compute again after",
            "Number of evaluations after which a reused effect is computed again at the latest; 0: no limit.",
            default=4,
            between=(0, 128),
            unit="evaluations",
            lowest="no limit",
        ),
    ),
    resolve=resolve,
    describe=describe,
    idle=idle,
)
