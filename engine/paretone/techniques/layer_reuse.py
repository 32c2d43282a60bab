"""Reuse of the middle layers' outputs between steps: DiTReducio's temporal skipping, applied to masked models.

The first and the last layers are computed at every step; the residual of those in between is stored at the last step
that computed all layers. Unpublished for masked speech models: an experiment.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Values, count
from paretone.setting.plan import MaskedPlan, Part
from paretone.techniques.base import Context, Paper, Technique, ordinal


def resolve(context: Context, knobs: Values, plan: MaskedPlan) -> MaskedPlan:
    info, ends = context.info, int(knobs["ends"])
    layers = range(ends, info.layers - ends) if context.loaded else range(0)
    if context.loaded and not layers:
        raise SettingError(
            f"{info.title} has {info.layers} layers, so none is left to reuse where {ends} at each end are always "
            f"computed; set {TECHNIQUE.title} to fewer layers at each end."
        )
    run = Part.of("paretone.models.kernels.kept_prefix:ReusedLayersRun", every=int(knobs["every"]), layers=layers)
    return replace(plan, run=run).noted(
        "The middle layers were not computed at every step, which is an unpublished approximation."
    )


def describe(knobs: Values) -> str:
    ends = int(knobs["ends"])
    outer = "the first and the last layer" if ends == 1 else f"the first and the last {ends} layers"
    return f"{outer} at every step, those between at the first and every {ordinal(knobs['every'])} of a canvas or block"


TECHNIQUE = Technique(
    name="layer_reuse",
    title="Layers reused between steps (experiment)",
    summary="Computes the middle layers only at some steps; unpublished for masked speech models.",
    benefit="Middle layers computed at some steps only",
    experimental=True,
    paper=Paper("After temporal skipping in diffusion transformers", "arXiv 2509.09748"),
    families=("masked",),
    slot="skipping",
    place=150,
    mark=Mark("orange", "diamond"),
    knobs=(
        count(
            "every",
            "Whole steps",
            "All layers are computed at the first step and at every n-th step after it; in between, the last output "
            "of the middle layers is reused.",
            default=2,
            symbol="n",
            between=(2, 32),
        ),
        count(
            "ends",
            "Layers at each end",
            "Number of first and of last layers that are computed at every step.",
            default=2,
            unit="layers",
            between=(1, 16),
        ),
    ),
    resolve=resolve,
    describe=describe,
    idle=lambda knobs, plan: "no step lay between two that are computed whole; take more steps",
)
