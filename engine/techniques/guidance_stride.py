"""Guidance at every n-th step of masked models: the unconditional branch runs no more often than that.

In between, the difference that it made the last time stands for it (what DiTReducio calls branch skipping, carried over
to hidden states before the head), or guidance is left out. Nobody has published this for masked speech models: an
experiment.
"""

from __future__ import annotations

from engine.setting.knobs import Choice, Number, Values
from engine.setting.setting import Setting
from engine.techniques.base import Paper, Technique, ordinal

NAME = "guidance_stride"
REUSE, LEAVE_OUT = "reuse", "leave_out"


def conflict(setting: Setting) -> str | None:
    """Why it cannot take part in ``setting``, or ``None``."""
    if not setting.options.get("guidance", 2.0):
        return "Guidance is off, so there is none to leave out now and then; set a strength, or do without."
    return None


def describe(knobs: Values) -> str:
    """Which steps are guided."""
    between = "its last effect reused in between" if knobs["between"] == REUSE else "none in between"
    return f"both branches at every {ordinal(knobs['every'])} step, {between}"


TECHNIQUE = Technique(
    name=NAME,
    title="Guidance at every n-th step (experiment)",
    summary="Runs the unconditional branch only now and then; unpublished for masked speech models.",
    paper=Paper("After DiTReducio: branch skipping", "arXiv 2509.09748"),
    families=("masked",),
    place=130,
    knobs=(
        Number(
            "every",
            "Guided steps",
            "Both branches run at the first step and at every n-th from there.",
            default=2,
            symbol="n",
            minimum=2,
            maximum=32,
            whole=True,
        ),
        Choice(
            "between",
            "In between",
            "What guidance did the last time may stand for it, or nothing.",
            default=REUSE,
            values=(REUSE, LEAVE_OUT),
            titles=("Reuse its last effect", "No guidance"),
        ),
    ),
    conflict=conflict,
    describe=describe,
)
