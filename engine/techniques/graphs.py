"""CUDA graphs: a forward's kernels are recorded once for each shape and launched all at once from then on.

What is computed stays the same; what is saved is launching kernels one by one, which small batches on fast cards wait
for most of the time (:mod:`engine.measure.roofline` shows how much). See :mod:`engine.models.kernels.graphs`.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import SettingError
from engine.models.base import ModelInfo
from engine.setting.knobs import Number, Values
from engine.setting.setting import Setting
from engine.techniques.base import Paper, Technique

NAME = "graphs"
PARTIAL = {"ditreducio": "DiTReducio", "error_curve": "The error-curve cache", "first_block": "The first-block cache"}
"""Techniques that compute another part of each evaluation, with their names for people."""


@dataclass(frozen=True)
class Graphing:
    """How forwards are recorded."""

    bucket: int
    """Lengths are rounded up to multiples of this; 1: every length has a graph of its own."""
    most: int
    """How many graphs are kept."""
    share: float
    """How much of the device's memory they may hold together, at most 1."""

    @classmethod
    def of(cls, knobs: Values) -> Graphing:
        """What the technique's knobs come to."""
        return cls(int(knobs["bucket"]), int(knobs["most"]), int(knobs["share"]) / 100)


def require_offered(info: ModelInfo, name: str) -> None:
    """Raise :class:`SettingError` where the loaded model's device cannot do what the technique ``name`` needs."""
    reason = dict(info.lacking).get(name)
    if reason:
        raise SettingError(reason)


def computes_in_part(setting: Setting) -> str | None:
    """The technique of ``setting``, by its name for people, under which evaluations differ in what they compute."""
    return next((title for name, title in PARTIAL.items() if setting.engaged(name)), None)


def conflict(setting: Setting) -> str | None:
    """Why it cannot take part in ``setting``, or ``None``."""
    if setting.engaged("compilation"):
        return "Compiled code records graphs of its own in the mode reduce-overhead; do without one of the two."
    partial = computes_in_part(setting)
    if partial:
        return f"{partial} computes another part of every evaluation, and graphs record whole ones; choose one of them."
    return None


def describe(knobs: Values) -> str:
    """What is recorded."""
    graphing = Graphing.of(knobs)
    lengths = "every length" if graphing.bucket == 1 else f"lengths rounded up to {graphing.bucket}"
    return f"one graph for {lengths}, at most {graphing.most} kept, in {graphing.share:.0%} of the memory"


TECHNIQUE = Technique(
    name=NAME,
    title="CUDA graphs",
    summary="Launches all kernels of a forward at once, on NVIDIA graphics cards. The result stays the same.",
    paper=Paper("CUDA Graphs in PyTorch", "pytorch.org/blog/accelerating-pytorch-with-cuda-graphs"),
    families=("flow", "language", "masked"),
    place=50,
    knobs=(
        Number(
            "bucket",
            "Length bucket",
            "Lengths are rounded up to multiples of this, so that passages and blocks share graphs; what is padded is "
            "masked. 1 records every length by itself, without a mask.",
            default=64,
            unit="frames",
            minimum=1,
            maximum=1024,
            whole=True,
        ),
        Number(
            "most",
            "Graphs kept",
            "Each holds memory of its own; the one that was used longest ago is given up for a new one.",
            default=8,
            minimum=1,
            maximum=64,
            whole=True,
        ),
        Number(
            "share",
            "Memory for graphs",
            "What they may hold together. What a graph takes is measured when it is recorded; one that takes more than "
            "this by itself is not kept, and its forwards run without.",
            default=20,
            unit="% of the card's",
            minimum=1,
            maximum=90,
            whole=True,
        ),
    ),
    conflict=conflict,
    describe=describe,
)
