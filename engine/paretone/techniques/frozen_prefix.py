"""Text and reference computed at every n-th step only: DiTReducio's temporal skipping, applied to masked models, whose
rows before the canvas change little from step to step.

In between, only the canvas passes the network; it attends to the stored keys and values of text and reference.
Unpublished for masked speech models: an experiment.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Values, count
from paretone.setting.plan import MaskedPlan, Part
from paretone.techniques.base import Context, Paper, Technique, ordinal


def resolve(context: Context, knobs: Values, plan: MaskedPlan) -> MaskedPlan:
    run = Part.of("paretone.models.kernels.kept_prefix:KeptPrefixRun", every=int(knobs["every"]))
    return replace(plan, run=run).noted(
        "Text and reference were not computed at every step, which is an unpublished approximation."
    )


TECHNIQUE = Technique(
    name="frozen_prefix",
    title="Frozen text and reference (experiment)",
    summary="Computes text and reference only at some steps; unpublished for masked speech models.",
    benefit="Text and reference computed at some steps only",
    experimental=True,
    paper=Paper("After temporal skipping in diffusion transformers", "arXiv 2509.09748"),
    families=("masked",),
    slot="skipping",
    place=140,
    mark=Mark("blue", "hexagon"),
    knobs=(
        count(
            "every",
            "Computed steps",
            "Text and reference are computed at the first step and at every n-th step after it.",
            default=4,
            symbol="n",
            between=(2, 64),
        ),
    ),
    resolve=resolve,
    describe=lambda knobs: (
        f"text and reference at the first and every {ordinal(knobs['every'])} step of a canvas or block"
    ),
    idle=lambda knobs, plan: "no step lay between two that are computed whole; take more steps",
)
