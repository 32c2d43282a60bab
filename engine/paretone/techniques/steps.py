"""Step pruning: fewer steps from noise to speech, on a grid that places them where they matter.

The change is in the plan: the setting's own options, and so its baseline, keep their steps.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.figures.glyphs import Mark
from paretone.sampling.options import SPACING, STEPS, SWAY
from paretone.sampling.schedules import EPSS, effective_spacing
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan
from paretone.techniques.base import Context, Paper, Technique, no_fewer


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    plan = replace(plan, options=plan.options.replace(**knobs))
    return plan.noted(*remarks(plan.options, knobs), *no_fewer(plan))


def describe(knobs: Values) -> str:
    steps, sway = knobs["steps"], knobs["sway"]
    if effective_spacing(steps, knobs["spacing"]) == "epss":
        grid = f"at {' '.join(map(str, EPSS[steps]))} of 32 (EPSS)"
    else:
        grid = "evenly spaced"
    bent = f", bent by a sway of {sway:g}".replace("-", "−") if sway else ""
    return f"{steps} step{'' if steps == 1 else 's'} {grid}{bent}"


def remarks(options: Values, knobs: Values) -> tuple[str, ...]:
    """Remarks on grids without EPSS, or untested combinations with EPSS."""
    steps, found = knobs["steps"], []
    if knobs["spacing"] == "epss" and steps not in EPSS:
        tables = ", ".join(map(str, EPSS))
        found.append(f"EPSS has tables for {tables} steps only, so these {steps} are evenly spaced.")
    if effective_spacing(steps, knobs["spacing"]) == "epss":
        if steps == 16:
            found.append(
                "16 steps are not evenly spaced with EPSS, whereas versions of F5-TTS before EPSS spaced them evenly."
            )
        if knobs["sway"] != -1:
            found.append(f"EPSS was tuned for a sway of -1, not of {knobs['sway']:g}.")
        if options.get("solver") == "midpoint":
            found.append("EPSS was tuned for the Euler solver; with midpoint every step takes two evaluations.")
        if options.get("overshoot"):
            found.append(
                "EPSS was made for F5-TTS: its long last steps leave MegaTTS 3's overshoot no room and become "
                "predictions of the end; less overshoot may sound better."
            )
    return tuple(found)


TECHNIQUE = Technique(
    name="steps",
    title="Step pruning",
    summary="Uses fewer steps from noise to speech, placed where they matter most.",
    benefit="A few well-placed steps instead of many",
    paper=Paper(
        "Accelerating Flow-Matching-Based Text-to-Speech via Empirically Pruned Step Sampling", "arXiv 2505.19931"
    ),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="grid",
    place=30,
    mark=Mark("green", "triangle"),
    exports="paretone.export.targets",
    knobs=(
        replace(STEPS, default=7, trajectory=False),
        replace(SPACING, trajectory=False),
        replace(SWAY, trajectory=False),
    ),
    resolve=resolve,
    describe=describe,
)
