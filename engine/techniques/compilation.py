"""``torch.compile``: evaluations are translated into fewer, larger kernels before they run. See
:mod:`engine.models.compiled`.

Measured on f5-mini (491 frames, two branches, one thread of a Xeon with AMX, paired CPU time of evaluations): compiling
took five minutes and gave 1.06 times the speed (95 % interval 1.02 to 1.09) of the packed products that run otherwise;
the same products unpacked and not compiled gave 1.09 (1.03 to 1.11). On processors it hence does not help.
"""

from __future__ import annotations

from engine.knobs import Choice, Values
from engine.setting import Setting
from engine.techniques.base import Paper, Technique
from engine.techniques.graphs import computes_in_part

NAME = "compilation"
MODES = ("default", "reduce-overhead", "max-autotune")


def conflict(setting: Setting) -> str | None:
    """Why it cannot take part in ``setting``, or ``None``."""
    partial = computes_in_part(setting)
    if partial:
        return f"{partial} computes another part of every evaluation, and only whole ones are compiled; choose one."
    entry = setting.engaged("precision")
    if entry is not None and entry.knobs.get("precision") == "int8":
        return "Products of whole numbers cannot be compiled; choose another precision, or do without."
    return None


def describe(knobs: Values) -> str:
    """How it is compiled."""
    return f"evaluations compiled, mode {knobs['mode']}"


TECHNIQUE = Technique(
    name=NAME,
    title="torch.compile",
    summary="Translates evaluations into fewer, larger kernels. Worth its minutes on graphics cards only.",
    paper=Paper("PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation", "ASPLOS 2024"),
    families=("flow", "masked"),
    knobs=(
        Choice(
            "mode",
            "Mode",
            "reduce-overhead records CUDA graphs as well; max-autotune tries out many kernels, which takes longer.",
            default="default",
            values=MODES,
            titles=("default", "reduce-overhead (CUDA graphs)", "max-autotune"),
        ),
    ),
    conflict=conflict,
    describe=describe,
)
