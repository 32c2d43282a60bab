"""Guidance on the first steps only: all branches up to step k, afterwards only the fully conditioned one.

After Selective CFG for speech (arXiv 2509.19668), which changes the guidance of the text in later steps, and FlashRT
(github.com/LiangSu8899/FlashRT), which guides OmniVoice at its first step only. Here k is free, and later steps follow
the plain conditional velocity (in masked models: the conditional scores), without compensation.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.export.accounts import GUIDED_STEPS, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Values, count
from paretone.setting.plan import NOTHING_TO_SKIP
from paretone.setting.setting import UsedTechnique
from paretone.techniques.base import AnyPlan, Context, Paper, Technique, require_guidance

NAME = "guidance_interval"


def resolve(context: Context, knobs: Values, plan: AnyPlan) -> AnyPlan:
    branches = context.info.guidance.branches(plan.options)
    require_guidance(context, branches, "run one branch from the start: there is no guidance to end")
    plan = replace(plan, guidance=replace(plan.guidance, steps=int(knobs["steps"])))
    guided, steps = knobs["steps"], plan.options["steps"]
    if guided < steps:
        return plan
    return plan.noted(f"{NOTHING_TO_SKIP}: guidance on the first {guided} of {steps} steps is guidance at all of them.")


def describe(knobs: Values) -> str:
    if knobs["steps"] == 1:
        return "all branches at the first step only"
    return f"all branches at the first {knobs['steps']} steps, one afterwards"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Carried to samplers that count their steps; see :mod:`paretone.export.targets`."""
    if GUIDED_STEPS not in target.takes:
        return lacking(target, entry)
    steps = int(entry.knobs.get("steps", 8))
    return Carried((whole_line(entry, "as the number of guided steps"),), given={"guided_steps": steps})


TECHNIQUE = Technique(
    name=NAME,
    title="Guidance on the first k steps (after Selective CFG / FlashRT)",
    summary="Guides only the first steps; after them one branch runs instead of two (MegaTTS 3: three).",
    benefit="Guides the first steps only, with one pass afterwards",
    paper=Paper("Selective Classifier-free Guidance for Zero-shot Text-to-speech", "arXiv 2509.19668"),
    families=("flow", "masked", "language"),
    of_mel_flow=True,
    slot="guidance",
    place=90,
    mark=Mark("blue", "triangle"),
    exports=__name__,
    knobs=(
        count(
            "steps",
            "Guided steps",
            "Number of guided steps from the first. On grids that are dense near the noise, the first half of the "
            "steps is a small part of the trajectory.",
            default=8,
            symbol="k",
            between=(1, 128),
        ),
    ),
    resolve=resolve,
    describe=describe,
)
