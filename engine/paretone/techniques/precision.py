"""Precision: attention and feed-forward modules compute with fewer bits. See
:mod:`paretone.models.kernels.precision`."""

from __future__ import annotations

from dataclasses import replace

from paretone.export.accounts import PRECISION, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.figures.glyphs import Mark
from paretone.models.base import ModelInfo
from paretone.setting.knobs import Choice, Values
from paretone.setting.plan import PRECISIONS, WHOLE
from paretone.setting.setting import UsedTechnique
from paretone.techniques.base import AnyPlan, Context, Paper, Technique


def resolve(context: Context, knobs: Values, plan: AnyPlan) -> AnyPlan:
    """The chosen precision or, if the device gains nothing from it, the model's own, with a note."""
    wanted, info = str(knobs["precision"]), context.info
    if not context.loaded or wanted in info.precisions:
        return replace(plan, precision=wanted)
    return plan.noted(
        f"{info.device} does not gain from {wanted} for {info.title}, which uses {info.precision} "
        f"instead; there {'are' if len(info.precisions) > 1 else 'is'} {', '.join(info.precisions)}."
    )


def little(info: ModelInfo) -> str:
    """Note that the device gains nothing from fewer bits, or ``""``."""
    if any(one != info.precision for one in info.precisions):
        return ""
    return f"{info.device} is fastest in {info.precision}, which the model runs in anyway."


def describe(knobs: Values) -> str:
    precision = knobs["precision"]
    if precision == "float32":
        return "everything in float32"
    if precision.endswith(WHOLE):
        return f"the whole network in {precision.removesuffix(WHOLE)}; probabilities in float32"
    inputs = " with dynamically quantised inputs" if precision == "int8" else ""
    return f"attention and feed-forward in {precision}{inputs}; state, norms, time vectors and output in float32"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Carried as one precision for the whole network; see :mod:`paretone.export.targets`."""
    wanted = str(entry.knobs.get("precision", "bfloat16"))
    if PRECISION not in target.takes:
        return lacking(target, entry)
    if wanted != "float32" and not wanted.endswith(WHOLE):
        return Carried(drops=(whole_line(entry, f"{target.program} computes the whole network in one precision"),))
    kind = wanted.removesuffix(WHOLE)
    return Carried((whole_line(entry, f"the model is loaded as {kind}"),), given={"precision": kind})


TECHNIQUE = Technique(
    name="precision",
    title="Precision",
    summary="Computes attention and feed-forward modules in fewer bits, where that is faster on the device.",
    benefit="Fewer bits, where the device is faster with them",
    little=little,
    paper=Paper("Mixed Precision Training", "arXiv 1710.03740"),
    families=("flow", "masked"),
    slot="precision",
    place=40,
    mark=Mark("purple", "circle"),
    exports=__name__,
    knobs=(
        Choice(
            "precision",
            "Precision",
            "bfloat16 has float32's range with three digits, float16 more digits and less range; int8 has 256 values. "
            "Usually the residual stream, norms and output stay float32; with “all of it”, nothing is "
            "converted in between (on GPUs; there F5-TTS runs so unless set otherwise, as upstream).",
            default="bfloat16",
            values=PRECISIONS,
            titles=(
                "float32",
                "bfloat16",
                "float16",
                "int8 (dynamic, CPUs)",
                "bfloat16, all of it",
                "float16, all of it",
            ),
        ),
    ),
    resolve=resolve,
    describe=describe,
)
