"""Searched grid: the times of the evaluations are placed by a search, for one model, guidance and number of them.

After O3S, the Optimal Step Sampling Search of IntMeanFlow (arXiv 2510.07979). ``grid`` is the artefact, ``searching``
makes one with a loaded model, by the figures in ``objectives``; the searches: :mod:`paretone.sampling.grid_search`.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.errors import ProfileError, SettingError
from paretone.figures.glyphs import Mark
from paretone.measure.metrics import HIGHER, JUDGED, METRICS, NEITHER, metric
from paretone.sampling.grid_search import METHODS, Value
from paretone.sampling.schedules import time_grid
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Choice, Effect, Number, Values
from paretone.setting.plan import FlowPlan, NotPrepared
from paretone.setting.setting import Setting
from paretone.techniques import resolving
from paretone.techniques.base import ArtefactFile, ArtefactType, Context, Job, Paper, Technique, to_type
from paretone.techniques.registry import technique
from paretone.techniques.searched_grid import grid
from paretone.techniques.searched_grid.grid import EULER, PlacedGrid, placed_for

NAME = "searched_grid"
DISTANCE = "distance"
FIDELITY = tuple(one.name for one in METRICS if one.relative and one.of is not None)
"""Figures of the sound against another from the same noise."""
OBJECTIVES = (DISTANCE, *FIDELITY, *(one.name for one in JUDGED if one.better != NEITHER))
"""What a search can go by: the distance to the end point of many steps, figures of the sound against what these say,
and figures of judges."""


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    """The placed times take the place of the options' grid."""
    if plan.options.get("solver", "euler") != "euler":
        raise SettingError("Placed times have one evaluation per step; choose the Euler solver.")
    steps = int(knobs["evaluations"])
    plan = replace(plan, options=plan.options.replace(steps=steps))
    found = context.artefact
    if not isinstance(found, PlacedGrid):
        # Placed anyhow, so that others see that no options make this grid.
        times = tuple(float(time) for time in time_grid(steps, "uniform", -1.0))
        raise NotPrepared(
            f"{TECHNIQUE.title} has no placed times yet; search them first, or open a file.",
            replace(plan, times=times),
            to_type(f"search-grid --evaluations {steps} --grid grid.json", context.info),
        )
    if found.steps != steps:
        raise ProfileError(
            f"The placed grid has {found.steps} evaluations, but {steps} are set; set {found.steps}, or search again."
        )
    mismatch = found.compatibility.mismatch(wanted(context, steps))
    if mismatch:
        raise ProfileError(f"The placed grid cannot be used here: {mismatch}. Search again.")
    plan = replace(plan, times=found.times)
    solver = solver_of(context.setting)
    if solver == found.solver:
        return plan
    return plan.noted(
        f"The times were placed for {found.solver}, and {solver} is used; a search for it may find better."
    )


def wanted(context: Context, steps: int) -> Compatibility:
    """What a placed grid must have been made for: all that runs without it, such as other weights or guidance."""
    others = context.setting.without(NAME)
    if not context.loaded:
        return placed_for(resolving.foreseen(others, context.info).compatibility, steps)
    return placed_for(resolving.compatibility_of(context.info, others, context.artefacts), steps)


def solver_of(setting: Setting) -> str:
    """The solver of ``setting``, in words."""
    for one in setting.techniques:
        declared = technique(one.technique)
        if declared.slot.partition(":")[0] == "solver":
            said = declared.describe(resolving.knobs_of(one))
            return f"{declared.title} ({said})" if said else declared.title
    return EULER


def describe(knobs: Values) -> str:
    """Number of evaluations."""
    return f"{knobs['evaluations']} evaluations at searched times"


def _title(name: str) -> str:
    return "Distance to many steps" if name == DISTANCE else metric(name).title


def figure_of(value: Value, objective: str) -> float:
    """The figure that a search goes by, as people know it: judges' figures that are better if higher have their
    sign back."""
    higher = objective != DISTANCE and metric(objective).better == HIGHER
    return -value[0] if higher else value[0]


TECHNIQUE = Technique(
    name=NAME,
    title="Searched grid",
    summary="Places a few evaluations at times that a search has found for this model and guidance.",
    benefit="A few evaluations at searched times",
    paper=Paper("IntMeanFlow: Few-Step Speech Generation with Integral Velocity Distillation", "arXiv 2510.07979"),
    families=("flow",),
    slot="grid",
    place=32,
    mark=Mark("violet", "hexagon"),
    exports="paretone.techniques.searched_grid.hooks",
    resolve=resolve,
    describe=describe,
    study="paretone.techniques.searched_grid.hooks",
    commands=("paretone.techniques.searched_grid.command",),
    artefact=ArtefactType("grid", PlacedGrid, PlacedGrid.from_json, PlacedGrid.to_json, grid.check, grid.fixed_knobs),
    artefact_file=ArtefactFile(
        "grid",
        "placed grid",
        "placed grid of a search",
        "paretone.techniques.searched_grid.command:with_grid",
        made_by="search-grid --grid grid.json",
    ),
    jobs=(
        Job(
            "search_grid",
            "Searching a grid",
            "paretone.techniques.searched_grid.grid:SearchRequest",
            "paretone.techniques.searched_grid.searching:carry_out_search",
        ),
    ),
    knobs=(
        Number(
            "evaluations",
            "Evaluations",
            "Number of evaluations from noise to speech; each number has its own times.",
            default=5,
            symbol="N",
            effect=Effect.AFTER_CALIBRATION,
            minimum=2,
            maximum=12,
            whole=True,
        ),
        Choice(
            "search",
            "Search",
            "O3S: ternary search of one time after another. Coordinate search: each time moves while that helps.",
            default=METHODS[0],
            effect=Effect.AFTER_CALIBRATION,
            values=METHODS,
            titles=("O3S (ternary search)", "Coordinate search"),
        ),
        Choice(
            "objective",
            "Searched by",
            "Figure that the times are searched by: the distance to where many steps end from the same noise, a figure "
            "of the sound against what they say, or what a judge says of the speech. Ties are decided by the distance.",
            default=DISTANCE,
            effect=Effect.AFTER_CALIBRATION,
            values=OBJECTIVES,
            titles=tuple(map(_title, OBJECTIVES)),
        ),
        Number(
            "passes",
            "Passes",
            "Passes over all times; the search ends earlier once one finds nothing better.",
            default=2,
            effect=Effect.AFTER_CALIBRATION,
            minimum=1,
            maximum=10,
            whole=True,
        ),
    ),
)
