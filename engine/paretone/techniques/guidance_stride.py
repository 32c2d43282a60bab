"""Guidance at every n-th step of masked models: the unconditional branch runs at these steps only.

In between, its last difference is reused (DiTReducio's branch skipping, applied to hidden states before the head), or
guidance is omitted. Unpublished for masked speech models: an experiment.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.errors import SettingError
from paretone.export.accounts import GUIDANCE_EVERY, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Choice, Values, count
from paretone.setting.plan import MaskedPlan
from paretone.setting.setting import UsedTechnique
from paretone.techniques.base import Context, Paper, Technique, ordinal

NAME = "guidance_stride"
REUSE, LEAVE_OUT = "reuse", "leave_out"


def resolve(context: Context, knobs: Values, plan: MaskedPlan) -> MaskedPlan:
    if not plan.options["guidance"]:
        raise SettingError("Guidance is off; set a strength, or do without this technique.")
    return replace(plan, guidance=replace(plan.guidance, every=int(knobs["every"]), reuse=knobs["between"] == REUSE))


def describe(knobs: Values) -> str:
    between = "its last effect reused in between" if knobs["between"] == REUSE else "none in between"
    return f"both branches at every {ordinal(knobs['every'])} step, {between}"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Carried only with reuse, and approximately: other programs reuse the unconditional branch's output, Paretone the
    difference. See :mod:`paretone.export.targets`."""
    if GUIDANCE_EVERY not in target.takes or entry.knobs.get("between", REUSE) != REUSE:
        return lacking(target, entry)
    how = f"nearly: {target.program} reuses the unconditional branch's output, Paretone the effect of guidance"
    return Carried((whole_line(entry, how),), given={"guidance_every": int(entry.knobs.get("every", 2))})


TECHNIQUE = Technique(
    name=NAME,
    title="Guidance at every n-th step (experiment)",
    summary="Runs the unconditional branch only at some steps; unpublished for masked speech models.",
    benefit="One pass instead of two at most steps",
    experimental=True,
    paper=Paper("After branch skipping in diffusion transformers", "arXiv 2509.09748"),
    families=("masked",),
    slot="guidance:every",
    place=130,
    mark=Mark("red", "triangle"),
    exports=__name__,
    knobs=(
        count(
            "every",
            "Guided steps",
            "Both branches run at the first step and at every n-th step after it.",
            default=2,
            symbol="n",
            between=(2, 32),
        ),
        Choice(
            "between",
            "In between",
            "Reuse the last effect of guidance, or use none.",
            default=REUSE,
            values=(REUSE, LEAVE_OUT),
            titles=("Reuse its last effect", "No guidance"),
        ),
    ),
    resolve=resolve,
    describe=describe,
    idle=lambda knobs, plan: "canvases and blocks had one step each, which is guided; take more steps",
)
