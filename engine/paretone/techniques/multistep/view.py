"""Order of convergence: how fast each solver approaches the end point of many steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paretone.sampling.multistep import METHODS
from paretone.sampling.options import STEPS
from paretone.setting.knobs import Effect, Switch, Values, checked
from paretone.setting.plan import with_flow_options
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.multistep import NAME, TITLES
from paretone.techniques.resolving import resolve, without_slots
from paretone.views.figure import Axis, Curve, Lines
from paretone.views.view import Findings, Stages, Task, View, count_knob

FEWEST = 4
"""Steps of the coarsest grid; each further grid doubles them."""


def compute(task: Task) -> Findings:
    """Run each solver on each grid from the same noise, and compare with one run of many steps."""
    setting = plain(task.setting)
    options = checked(task.model.info.knobs, setting.options, task.model.info.title)
    fixed: dict[str, object] = {"spacing": "uniform"}
    if task.knobs["even"]:
        fixed["sway"] = 0.0
    noisy = bool(options.get("overshoot"))
    if noisy:
        # With noise at every step, solvers have no common end point.
        fixed["overshoot"] = 0.0
    counts = [FEWEST * 2**number for number in range(int(task.knobs["doublings"]) + 1)]
    # The end point's steps, within the model's limit, by the method of the highest order.
    many = min(4 * counts[-1], int(STEPS.maximum))
    solvers: dict[str, tuple[dict[str, object], UsedTechnique | None]] = {"Euler": ({}, None)}
    if "solver" in options:
        solvers["Midpoint"] = {"solver": "midpoint"}, None
    solvers |= {TITLES[one]: ({}, UsedTechnique(NAME, Values(method=one))) for one in METHODS}
    work = Stages(task.observer, sum(counts) * (len(solvers) + ("solver" in options)) + many)

    def end(steps: int, changed: dict[str, object], used: UsedTechnique | None, title: str) -> np.ndarray:
        placed = {"steps": steps, **fixed, **changed}
        # In the setting only options that the model has; the flow after a language model has more, set in the plan.
        known = {name: value for name, value in placed.items() if name in options}
        chosen = replace(setting, options=setting.options.replace(**known))
        if used is not None:
            chosen = chosen.with_technique(used)
        plan = with_flow_options(resolve(task.model.info, chosen), **placed)
        part = work.part(steps * (2 if changed else 1), f"{title}: {steps} steps")
        taken = 0

        def check() -> None:
            nonlocal taken
            taken += 1
            part.progress(min(taken, steps), steps)

        return task.flow.last_state(task.flow.script(task.utterance.text, task.utterance.voice, plan), check)

    finest = end(many, {}, UsedTechnique(NAME, Values(method="unipc")), "End point")
    curves = []
    for title, (changed, used) in solvers.items():
        evaluations = tuple(float(count * (2 if changed else 1)) for count in counts)
        errors = tuple(float(np.abs(end(count, changed, used, title) - finest).mean()) for count in counts)
        # Each note has the steps, and the order between this point and the one before.
        notes = [f"{counts[0]} steps"]
        for number in range(1, len(counts)):
            order = slope(counts[number - 1 : number + 1], errors[number - 1 : number + 1])
            notes.append(f"{counts[number]} steps, order {order:.2f}")
        curves.append(Curve(title, evaluations, errors, notes=tuple(notes)))
    panel = Lines(
        "Error by evaluations",
        Axis("Evaluations", logarithmic=True),
        Axis("Distance to the end point", "mean absolute difference of the last state", logarithmic=True),
        tuple(curves),
    )
    return Findings((panel,), _caption(counts, curves, many, noisy), across=1)


def plain(setting: Setting) -> Setting:
    """``setting`` with the Euler solver, without techniques of grid, solver or skipping."""
    options = {name: value for name, value in setting.options.items() if name != "solver"}
    return replace(without_slots(setting, "grid", "solver", "skipping"), options=Values(options))


def slope(steps: Sequence[float], errors: Sequence[float]) -> float:
    """Order of convergence: minus the slope of the least-squares line through logarithms; NaN if an error is zero."""
    if min(errors) <= 0:
        return math.nan
    return -float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


def _caption(counts: Sequence[int], curves: Sequence[Curve], many: int, noisy: bool) -> str:
    orders = [f"{one.name} {slope(counts, one.y):.2f}" for one in curves]
    best = min(curves, key=lambda one: one.y[0])
    return (
        f"Orders of convergence (slopes over {counts[0]} to {counts[-1]} steps): {'; '.join(orders)}. "
        f"Nearest to the end point at {counts[0]} steps: {best.name}, {best.y[0]:.3g}. The end point is that of {many} "
        "predictor–corrector steps from the same noise; one evaluation has all branches of the guidance."
        f"{' Overshoot, which adds noise at every step, is off here.' if noisy else ''}"
    )


VIEW = View(
    name="order-of-convergence",
    title="Order of convergence",
    question="How fast does each solver come nearer to where many steps end?",
    source="Hairer, Nørsett, Wanner: Solving Ordinary Differential Equations I, II.4",
    families=("flow",),
    knobs=lambda layers: (
        count_knob("doublings", "Doublings", f"Number of times that the steps double, from {FEWEST} on.", 3, 4),
        Switch(
            "even",
            "Even grid",
            "On evenly spaced times, instead of those that the model's sway makes.",
            default=False,
            effect=Effect.NEXT_VIEW,
        ),
    ),
    compute=compute,
)
