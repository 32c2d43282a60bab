"""First-block cache: while the first layer's residual hardly changes, the others are replaced by theirs.

Decided at run time, sentence by sentence, without preparation. Sources and differences from them:
:mod:`paretone.techniques.first_block.cache`.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Values, amount
from paretone.setting.plan import FlowPlan, Part
from paretone.techniques.base import Context, Paper, Technique
from paretone.wording import percent

NAME = "first_block"


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    return replace(plan, evaluator=Part.of(f"{__name__}.cache:evaluators", threshold=float(knobs["threshold"])))


def idle(knobs: Values, plan: FlowPlan) -> str:
    return (
        f"at none of {plan.evaluations} evaluations had the first layer's output changed by less than "
        f"{percent(knobs['threshold'])} since the last computed one; raise the threshold, or take more steps"
    )


TECHNIQUE = Technique(
    name=NAME,
    title="First-block cache (TeaCache/FBCache-like)",
    summary="Leaves out all layers but the first at steps where the first one's output has hardly changed.",
    benefit="One layer only, at steps where little changes",
    paper=Paper(
        "Timestep Embedding Tells: It's Time to Cache for Video Diffusion Model",
        "arXiv 2411.19108, and FBCache of ParaAttention",
    ),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="skipping",
    place=80,
    mark=Mark("purple", "diamond"),
    knobs=(
        amount(
            "threshold",
            "Threshold",
            "Relative change of what the first layer adds, summed over steps, from which the rest is computed again.",
            default=0.3,
            between=(0.0, 20.0),
            symbol="τ",
            step=0.05,
        ),
    ),
    resolve=resolve,
    describe=lambda knobs: (
        f"the other layers are left out until the first one's output has changed by {percent(knobs['threshold'])}"
    ),
    idle=idle,
)
