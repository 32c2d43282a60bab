"""Multistep solvers: higher order than Euler's with one evaluation per step. The methods:
:mod:`paretone.sampling.multistep`."""

from __future__ import annotations

from dataclasses import replace

from paretone.figures.glyphs import Mark
from paretone.sampling.multistep import METHODS, MIDPOINT, PREDICTOR_CORRECTOR, STARTS
from paretone.setting.knobs import Choice, Values
from paretone.setting.plan import FlowPlan, Part
from paretone.techniques.base import Context, Paper, Technique, require_euler

NAME = "multistep"


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    require_euler(plan.options, "Multistep solvers take one evaluation per step")
    step = Part.of("paretone.sampling.multistep:multistep_steps", method=knobs["method"], start=knobs["start"])
    plan = replace(plan, stepper=step, halves_first=knobs["start"] == MIDPOINT)
    return plan.noted(*remarks(plan.options, knobs, context.title_in("guidance")))


TITLES = {"ab2": "Adams–Bashforth 2", "unipc": "Predictor–corrector (after UniPC)", "stork2": "STORK-2"}
_SPOKEN = {"ab2": "Adams–Bashforth 2", "unipc": "a predictor–corrector", "stork2": "STORK-2"}


def describe(knobs: Values) -> str:
    start = "" if knobs["method"] == PREDICTOR_CORRECTOR and knobs["start"] != MIDPOINT else knobs["start"].title()
    return _SPOKEN[knobs["method"]] + (f" after a first step by {start}" if start else "")


def remarks(options: Values, knobs: Values, guidance: str = "") -> tuple[str, ...]:
    """Remarks on settings that lose the order. ``guidance`` is the title of a technique that changes it."""
    found = []
    if options["steps"] == 1 and knobs["start"] != MIDPOINT:
        found.append("A single step has no earlier velocities: it is Euler's.")
    elif 1 < options["steps"] <= 8:  # So far, Euler was more accurate on the bundled F5-TTS.
        found.append(
            f"With {options['steps']} steps the velocity changes much from one to the next, and extrapolating it can "
            "end further away than Euler; see the view Order of convergence."
        )
    if options.get("overshoot"):
        found.append(
            "The order is that of an ordinary differential equation; with an overshoot of "
            f"{options['overshoot']:g} every step adds noise."
        )
    if guidance:
        found.append(f"{guidance} lets the velocity jump; at the jump a multistep solver extrapolates wrongly.")
    return tuple(found)


TECHNIQUE = Technique(
    name=NAME,
    title="Multistep solver",
    summary="Uses the velocities of earlier steps as well: steps of a higher order than Euler's, with one evaluation "
    "each.",
    benefit="Higher-order steps at Euler's cost",
    paper=Paper(
        "Adams–Bashforth; UniPC: A Unified Predictor-Corrector Framework; STORK: Faster Diffusion and Flow Matching "
        "Sampling",
        "Hairer, Nørsett, Wanner: Solving ODE I, III.5; arXiv 2302.04867; arXiv 2505.24210",
    ),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="solver",
    place=35,
    mark=Mark("yellow", "down"),
    views=(f"{__name__}.view",),
    resolve=resolve,
    describe=describe,
    knobs=(
        Choice(
            "method",
            "Method",
            "Adams–Bashforth (order 2), a predictor–corrector that first corrects the state with the new velocity "
            "(order 3), or STORK-2 (order 2, many stages without evaluations).",
            default="ab2",
            values=METHODS,
            titles=tuple(TITLES[one] for one in METHODS),
        ),
        Choice(
            "start",
            "First step",
            "Euler; Heun, which corrects the first step with the second evaluation; or midpoint, which takes one more "
            "evaluation. The predictor–corrector corrects the first step in any case.",
            default="heun",
            values=STARTS,
            titles=("Euler", "Heun", "Midpoint (one more evaluation)"),
        ),
    ),
)
