"""``torch.compile``: evaluations are compiled into fewer, larger kernels before they run. See
:mod:`paretone.models.kernels.compiled`.

Measured on f5-mini (491 frames, two branches, one thread of a Xeon with AMX, paired CPU time of evaluations): compiling
took five minutes and gave 1.06× the speed (95 % interval 1.02 to 1.09) of the usual packed products; the same products
unpacked and not compiled gave 1.09× (1.03 to 1.11). On omni-mini (one guided step, likewise), two minutes gave 1.12×
(extremes without the two outermost 1.03 and 1.15) in float32, five 1.36× (1.27 to 1.41) in bfloat16. On CPUs it hence
seldom helps. Graphs are dynamic in the length: further lengths, including blocks, add no graphs.

Language models are not offered it. Measured on a decoding pass of LM mini (one token after 100 in fixed memory of 128,
one thread, 25 paired rounds of CPU time), compiled passes had 0.55× the usual speed (extremes without the two outermost
0.46 to 0.66): the compiler does not know products with float16 weights, so the graph is split at each. With float32
weights, which it knows, it was 0.54× (0.43 to 0.65). On GPUs CUDA graphs launch the same passes at once.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.figures.glyphs import Mark
from paretone.models.base import LANGUAGE, ModelInfo
from paretone.setting.knobs import Choice, Values
from paretone.techniques.base import AnyPlan, Conflict, Context, Paper, Technique, require_whole


def lacking(family: str) -> str | None:
    if family != LANGUAGE:
        return None
    return (
        "Compiling slows language models down: a compiled pass of LM mini took 1.8 times as long on a CPU, and on "
        "GPUs CUDA graphs launch passes at once; do without it."
    )


def little(info: ModelInfo) -> str:
    if info.device_type != "cpu":
        return ""
    return "Processors gain little: 1.06 to 1.36 times as fast in our measurements, after minutes of compiling."


def resolve(context: Context, knobs: Values, plan: AnyPlan) -> AnyPlan:
    require_whole(context, plan, "only whole ones are compiled")
    if plan.precision == "int8":
        raise Conflict("Integer products cannot be compiled; choose another precision, or do without.", "precision")
    return replace(plan, launching=replace(plan.launching, mode=str(knobs["mode"])))


TECHNIQUE = Technique(
    name="compilation",
    title="torch.compile",
    summary="Compiles evaluations into fewer, larger kernels, which takes minutes. CPUs gain little.",
    benefit="Fewer, larger kernels after minutes of compiling",
    little=little,
    paper=Paper("PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation", "ASPLOS 2024"),
    families=("flow", "language", "masked"),
    slot="launching",
    needs="compiling",
    lacking=lacking,
    place=60,
    mark=Mark("violet", "down"),
    knobs=(
        Choice(
            "mode",
            "Mode",
            "reduce-overhead also records CUDA graphs; max-autotune tries many kernels and takes longer.",
            default="default",
            values=("default", "reduce-overhead", "max-autotune"),
            titles=("default", "reduce-overhead (CUDA graphs)", "max-autotune"),
        ),
    ),
    resolve=resolve,
    describe=lambda knobs: f"evaluations compiled, mode {knobs['mode']}",
)
