"""CUDA graphs: the kernels of a forward pass are recorded once per shape and from then on launched together.

The computation is unchanged; graphs save launching kernels one by one, which dominates small batches on fast GPUs
(:mod:`paretone.measure.roofline` shows by how much). See :mod:`paretone.models.kernels.graphs`.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Values, count
from paretone.setting.plan import Graphing
from paretone.techniques.base import AnyPlan, Context, Paper, Technique, require_whole
from paretone.wording import percent


def resolve(context: Context, knobs: Values, plan: AnyPlan) -> AnyPlan:
    require_whole(context, plan, "graphs record whole ones")
    return replace(plan, launching=replace(plan.launching, graphs=graphing(knobs)))


def graphing(knobs: Values) -> Graphing:
    return Graphing(int(knobs["bucket"]), int(knobs["most"]), int(knobs["share"]) / 100)


def describe(knobs: Values) -> str:
    plan = graphing(knobs)
    lengths = "every length" if plan.bucket == 1 else f"lengths rounded up to {plan.bucket}"
    return f"one graph for {lengths}, at most {plan.most} kept, in {percent(plan.share)} of the memory"


TECHNIQUE = Technique(
    name="graphs",
    title="CUDA graphs",
    summary="Launches all kernels of a forward pass at once, on NVIDIA GPUs. The result is unchanged.",
    benefit="Launches all kernels at once; unchanged result",
    paper=Paper("CUDA Graphs in PyTorch", "pytorch.org/blog/accelerating-pytorch-with-cuda-graphs"),
    families=("flow", "language", "masked"),
    slot="launching",
    needs="recording",
    place=50,
    mark=Mark("yellow", "square"),
    knobs=(
        count(
            "bucket",
            "Length bucket",
            "Lengths are rounded up to multiples of this, so that passages and blocks share graphs; the padding is "
            "masked. 1: one graph per length, without a mask.",
            default=64,
            unit="frames",
            between=(1, 1024),
        ),
        count(
            "most",
            "Graphs kept",
            "Each has its own memory; the least recently used one is dropped for a new one.",
            default=8,
            between=(1, 64),
        ),
        count(
            "share",
            "GPU memory for graphs",
            "Share of the GPU's memory for all graphs together. Each graph is measured when it is recorded; one that "
            "takes more than this alone is not kept, and its forward passes run without.",
            default=20,
            unit="%",
            between=(1, 90),
        ),
    ),
    resolve=resolve,
    describe=describe,
)
