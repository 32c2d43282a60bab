"""Precision: attention and feed-forward modules compute in fewer bits. See :mod:`engine.models.kernels.precision`."""

from __future__ import annotations

from engine.models.base import ModelInfo
from engine.setting.knobs import Choice, Values, checked
from engine.setting.setting import Setting
from engine.techniques.base import Paper, Technique

NAME = "precision"
ALL = "_all"
"""Ends the names of precisions in which the whole network computes, and not only its products and attention."""
PRECISIONS = ("float32", "bfloat16", "float16", "int8", f"bfloat16{ALL}", f"float16{ALL}")


def computed_in(info: ModelInfo, setting: Setting) -> tuple[str, tuple[str, ...]]:
    """What the loaded model computes in under ``setting``; and, where its device gains nothing by what is asked for,
    the sentence that says so and goes with the take."""
    entry = setting.engaged(NAME)
    wanted = info.precision
    if entry is not None:
        wanted = str(checked(TECHNIQUE.knobs, entry.knobs, TECHNIQUE.title)["precision"])
    if wanted in info.precisions:
        return wanted, ()
    return info.precision, (
        f"{info.device} does not compute in {wanted} to advantage for {info.title}, which speaks in {info.precision} "
        f"instead; there {'are' if len(info.precisions) > 1 else 'is'} {', '.join(info.precisions)}.",
    )


def describe(knobs: Values) -> str:
    """What computes in which precision."""
    precision = knobs["precision"]
    if precision == "float32":
        return "everything in float32"
    if precision.endswith(ALL):
        return f"the whole network in {precision.removesuffix(ALL)}; probabilities in float32"
    inputs = " with inputs quantised as they come" if precision == "int8" else ""
    return f"attention and feed-forward in {precision}{inputs}; state, norms, time vectors and output in float32"


TECHNIQUE = Technique(
    name=NAME,
    title="Precision",
    summary="Computes attention and feed-forward modules in fewer bits, where the device gains by it.",
    paper=Paper("Mixed Precision Training", "arXiv 1710.03740"),
    families=("flow", "masked"),
    place=40,
    knobs=(
        Choice(
            "precision",
            "Precision",
            "bfloat16 has float32's range with three digits, float16 more digits and less range; int8 has 256 values. "
            "As a rule the residual stream, norms and output stay float32; where all of it is narrow, nothing is "
            "converted in between (masked models on graphics cards).",
            default="bfloat16",
            values=PRECISIONS,
            titles=(
                "float32",
                "bfloat16",
                "float16",
                "int8 (dynamic, processors)",
                "bfloat16, all of it",
                "float16, all of it",
            ),
        ),
    ),
    describe=describe,
)
