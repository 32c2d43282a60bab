"""Searched grid: a search places the evaluation times for one model, guidance and number of evaluations.

After O3S, the Optimal Step Sampling Search of IntMeanFlow (arXiv 2510.07979). A :class:`PlacedGrid` is the artefact,
``searching`` makes one with a loaded model; the searches: :mod:`paretone.sampling.grid_search`. Torch-free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from paretone.errors import ProfileError, placed
from paretone.fields import exact
from paretone.figures.glyphs import Mark
from paretone.measure.metrics import HIGHER, JUDGED, METRICS, NEITHER, metric
from paretone.models.base import Utterance
from paretone.reading import shown
from paretone.sampling.grid_search import METHODS, Trial, Value, rounded
from paretone.sampling.schedules import time_grid
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Choice, Effect, Values, count
from paretone.setting.plan import FlowPlan, NotPrepared, flow_of
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import resolving
from paretone.techniques.base import ArtefactFile, ArtefactType, Context, Job, Paper, Technique, require_euler, to_type
from paretone.techniques.registry import technique
from paretone.wording import significant

EULER = "Euler"
UNPLACED = ("spacing", "sway")
"""Sampler options that shape the usual grids and do not apply to a placed one."""
_FIELDS = {"belonging": object, "times": list[float], "solver": str, "origin": str}


@dataclass(frozen=True)
class PlacedGrid:
    """Times from 0 (noise) to 1 (speech), one more than steps."""

    compatibility: Compatibility
    """Compatibility of the grid, without the options of the grids that it replaces; see :func:`placed_for`."""
    times: tuple[float, ...]
    solver: str = EULER
    origin: str = ""

    def __post_init__(self) -> None:
        with placed(ProfileError, "The placed grid cannot be used"):
            rounded(self.times)
        if self.compatibility.steps != self.steps:
            raise ProfileError(
                f"The placed grid has {self.steps} steps, but says that it belongs to {self.compatibility.steps}."
            )

    @property
    def steps(self) -> int:
        return len(self.times) - 1

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are equal for grids that act equally on the same model."""
        return self.compatibility.fingerprint_of(self.to_json())

    def to_json(self) -> dict:
        data = {"belonging": self.compatibility.to_json(), "times": list(self.times)}
        return data | {"solver": self.solver, "origin": self.origin}

    @classmethod
    def from_json(cls, data: object, where: str = "placed grid") -> PlacedGrid:
        """Read the result of :meth:`to_json`. Raises :class:`ProfileError`, which names the faulty field."""
        found = exact(data, where, _FIELDS, ProfileError, optional=("origin",))
        compatibility = Compatibility.from_json(found["belonging"], f"{where}.belonging")
        return cls(compatibility, tuple(map(float, found["times"])), found["solver"], found.get("origin", ""))


def placed_for(compatibility: Compatibility, steps: int) -> Compatibility:
    """``compatibility`` for a placed grid: with its own number of steps, and without the usual grids' options."""
    sampling = {name: value for name, value in compatibility.sampling.items() if name not in UNPLACED}
    return replace(compatibility, sampling=Values(sampling | {"steps": steps}))


def check(grid: PlacedGrid, entry: UsedTechnique, compatibility: Compatibility) -> None:
    """Raise :class:`ProfileError` if grid, knobs of ``entry`` and the profile's compatibility disagree."""
    own = entry.knobs.get("evaluations", grid.steps)
    if own != grid.steps:
        raise ProfileError(f"grid.times have {grid.steps} steps, but setting.techniques says {shown(own)} evaluations.")
    placed_for(compatibility, grid.steps).require_said(grid.compatibility, "grid")


@dataclass(frozen=True)
class SearchRequest:
    """Request to search times for ``setting``, with its knobs of the technique, on all ``utterances`` together. Reports
    are :class:`paretone.sampling.grid_search.Trial`; the result is :class:`Searched`."""

    activity: ClassVar[str] = "searching a grid"

    utterances: tuple[Utterance, ...]
    setting: Setting
    resume: bool = True
    """Whether to resume an interrupted search with the same arguments."""


@dataclass(frozen=True)
class Start:
    title: str
    trial: Trial


@dataclass(frozen=True)
class Searched:
    grid: PlacedGrid
    starts: tuple[Start, ...]
    best: Trial
    trials: int
    unit: str
    """Description of the values: the first figure of a value is the objective."""
    seconds: float = 0.0


NAME = "searched_grid"
DISTANCE = "distance"
FIDELITY = tuple(one.name for one in METRICS if one.relative and one.of is not None)
"""Metrics that compare with another synthesis from the same noise."""
OBJECTIVES = (DISTANCE, *FIDELITY, *(one.name for one in JUDGED if one.better != NEITHER))
"""Objectives: the distance to the end point of many steps, fidelity to their sound, and judges' metrics."""


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    require_euler(plan.options, "Placed times have one evaluation per step")
    steps = int(knobs["evaluations"])
    plan = replace(plan, options=plan.options.replace(steps=steps))
    found = context.artefact
    if not isinstance(found, PlacedGrid):
        # Placed anyway, so that other techniques see that no options make this grid.
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
    return plan.noted(f"The times were placed for {found.solver}, and {solver} is used; a search for it may do better.")


def wanted(context: Context, steps: int) -> Compatibility:
    """Required compatibility of a placed grid: that of the setting without it, including other weights or guidance."""
    others = context.setting.without(NAME)
    info = context.speech or context.info
    if not context.loaded:
        return placed_for(flow_of(resolving.foreseen(others, info)).compatibility, steps)
    return placed_for(resolving.compatibility_of(info, others, context.artefacts, of_flow=True), steps)


def solver_of(setting: Setting) -> str:
    for one in setting.techniques:
        declared = technique(one.technique)
        if declared.main_slot == "solver":
            said = declared.describe(resolving.knobs_of(one))
            return f"{declared.title} ({said})" if said else declared.title
    return EULER


def _title(name: str) -> str:
    return "Distance to many steps" if name == DISTANCE else metric(name).title


def figure_of(value: Value, objective: str) -> float:
    """The objective's figure in its usual sign: judges' figures that are better if higher are negated in values."""
    higher = objective != DISTANCE and metric(objective).better == HIGHER
    return -value[0] if higher else value[0]


def figure_text(value: float | None, objective: str) -> str:
    """An objective's figure without its unit; ``–`` if it could not be measured, such as the pitch of noise."""
    if value is None or not math.isfinite(value):
        return "–"
    return significant(value) if objective == DISTANCE else metric(objective).spelt(value)


TECHNIQUE = Technique(
    name=NAME,
    title="Searched grid",
    summary="Places a few evaluations at times that a search has found for this model and guidance.",
    benefit="A few evaluations at searched times",
    paper=Paper("IntMeanFlow: Few-Step Speech Generation with Integral Velocity Distillation", "arXiv 2510.07979"),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="grid",
    place=32,
    mark=Mark("violet", "hexagon"),
    exports=f"{__name__}.hooks",
    resolve=resolve,
    describe=lambda knobs: f"{knobs['evaluations']} evaluations at searched times",
    study=f"{__name__}.hooks",
    commands=(f"{__name__}.command",),
    artefact=ArtefactType(
        "grid",
        PlacedGrid,
        PlacedGrid.from_json,
        PlacedGrid.to_json,
        check,
        lambda grid, knobs: knobs.replace(evaluations=grid.steps),
    ),
    artefact_file=ArtefactFile(
        "grid",
        "placed grid",
        "placed grid of a search",
        f"{__name__}.command:with_grid",
        made_by="search-grid --grid grid.json",
    ),
    jobs=(
        Job("search_grid", "Searching a grid", f"{__name__}:SearchRequest", f"{__name__}.searching:carry_out_search"),
    ),
    knobs=(
        count(
            "evaluations",
            "Evaluations",
            "Number of evaluations from noise to speech; each number has its own times.",
            default=5,
            symbol="N",
            effect=Effect.AFTER_CALIBRATION,
            between=(2, 12),
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
        count(
            "passes",
            "Passes",
            "Passes over all times; the search ends earlier once one finds nothing better.",
            default=2,
            effect=Effect.AFTER_CALIBRATION,
            between=(1, 10),
        ),
    ),
)
