"""Hooks of searched grids for studies and exports: see :mod:`paretone.studies.hooks` and
:mod:`paretone.export.targets`.

A study's files show metrics over the number of evaluations, by kind of grid and solver. Torch-free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paretone.errors import SettingError
from paretone.export.accounts import TIMES, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.figures import curves
from paretone.figures.curves import Curve, Curves, Level
from paretone.figures.glyphs import SERIES_ON_ANY, Glyphs, marks_in_turn
from paretone.figures.scatter import Dimension
from paretone.measure.metrics import JUDGED, Metric, metric
from paretone.models.base import SpeechModel, Utterance
from paretone.observer import Observer
from paretone.sampling.schedules import effective_spacing
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.results import Results, SettingResult, results
from paretone.studies.store import Store
from paretone.techniques.registry import technique
from paretone.techniques.resolving import foreseen, knobs_of
from paretone.techniques.searched_grid import DISTANCE, NAME, PlacedGrid, solver_of
from paretone.wording import comma_separated


def preparer() -> Callable[[SpeechModel, Sequence[Utterance], Setting, Observer], PlacedGrid]:
    """Preparer that searches a grid for each setting, on the study's calibration sentences."""

    def prepare(model: SpeechModel, sentences: Sequence[Utterance], setting: Setting, observer: Observer) -> PlacedGrid:
        # Imports torch.
        from paretone.techniques.searched_grid.searching import search_grid

        return search_grid(model, sentences, setting, observer).grid

    return prepare


def files(store: Store) -> dict[str, str]:
    """Compare searched grids with the usual ones, at equal numbers of evaluations."""
    return files_of(results(store))


FIGURES = ("log_mel_distance", *(one.name for one in JUDGED))
TABLE, PICTURE = "grids.csv", "grids.svg"


@dataclass(frozen=True)
class Placed:
    """Kind of grid, solver and number of evaluations of a setting."""

    grid: str
    solver: str
    evaluations: int


def files_of(results: Results) -> dict[str, str]:
    """The comparison as a table and a picture; empty for studies without searched grids."""
    found = compared(results)
    if not any(result.setting.technique(NAME) for result in found.values()):
        return {}
    picture = _picture(found, results)
    rows: list[tuple[object, ...]] = [("grid", "solver", "evaluations", "figure", "value", "low", "high", "takes")]
    for placed, one in found.items():
        for name in FIGURES:
            figure = one.figures.get(name)
            if figure is not None:
                row = (placed.grid, placed.solver, placed.evaluations, name)
                rows.append((*row, f"{figure.value:.6g}", f"{figure.low:.6g}", f"{figure.high:.6g}", figure.n))
    return {TABLE: comma_separated(rows), **({PICTURE: picture} if picture else {})}


def compared(results: Results) -> dict[Placed, SettingResult]:
    """Settings whose techniques decide only grid and solver, in order of evaluations."""
    found: dict[Placed, SettingResult] = {}
    for one in results.settings:
        placed = placed_of(one.setting)
        if placed is not None and one.figures:
            found.setdefault(placed, one)
    return dict(sorted(found.items(), key=lambda item: (item[0].solver, item[0].grid, item[0].evaluations)))


def placed_of(setting: Setting) -> Placed | None:
    """Kind of grid and solver of a setting; ``None`` if other techniques decide more, or it has no such grid."""
    if any(technique(one.technique).main_slot not in ("grid", "solver") for one in setting.techniques):
        return None
    try:
        plan = foreseen(setting)
        options: Values = plan.options
        if options.get("solver", "euler") != "euler":
            return None
        return Placed(_grid(setting, options), solver_of(setting), plan.evaluations)
    except (SettingError, KeyError, AttributeError):
        return None  # Of another family, or it cannot be run.


def _grid(setting: Setting, options: Values) -> str:
    used = setting.technique(NAME)
    if used is not None:
        knobs = knobs_of(used)
        how = str(knobs["search"]).upper() if knobs["search"] == "o3s" else str(knobs["search"])
        by = "" if knobs["objective"] == DISTANCE else f" by {metric(str(knobs['objective'])).title.lower()}"
        return f"searched ({how}{by})"
    if effective_spacing(options["steps"], options["spacing"]) == "epss":
        return "EPSS"
    return f"sway {options['sway']:g}".replace("-", "−") if options["sway"] else "even"


def _picture(found: Mapping[Placed, SettingResult], results: Results) -> str:
    kinds = list(dict.fromkeys(placed.grid for placed in found))
    glyphs = Glyphs(marks_in_turn(kinds), SERIES_ON_ANY, "currentColor")
    by_solver: dict[str, list[tuple[Placed, SettingResult]]] = defaultdict(list)
    for placed, one in found.items():
        by_solver[placed.solver].append((placed, one))
    shown = [name for name in FIGURES if any(name in one.figures for one in found.values())]
    rows = []
    for solver, points in by_solver.items():
        named = [(glyphs.glyph((kind,)).colours[0], kind) for kind in kinds if any(kind == p.grid for p, _ in points)]
        rows.append((solver, named, [_plot(points, metric(name), glyphs, results) for name in shown]))
    rows = [row for row in rows if any(one.curves for one in row[2])]
    return curves.sheet(rows) if rows else ""


def _plot(points: list[tuple[Placed, SettingResult]], one: Metric, glyphs: Glyphs, results: Results) -> Curves:
    curves = []
    for kind in dict.fromkeys(placed.grid for placed, _ in points):
        mine = [(p.evaluations, s.figures[one.name]) for p, s in points if p.grid == kind and one.name in s.figures]
        if mine:
            values = np.array([(figure.value, figure.low, figure.high) for _, figure in mine])
            tips = tuple(f"{kind}, {count} evaluations: {one.title} {one.said(figure.value)}" for count, figure in mine)
            curves.append(Curve(glyphs.glyph((kind,)), np.array([float(count) for count, _ in mine]), values, tips))
    floor = results.references.get(one.name)
    levels = () if floor is None else (Level(floor.value, "Reference speech"),)
    return Curves(Dimension("Evaluations"), Dimension.of(one), tuple(curves), levels)


def carried(target: Target, entry: UsedTechnique, artefact: PlacedGrid | None) -> Carried:
    """Carry the placed times if the target takes times."""
    if TIMES not in target.takes or artefact is None:
        return lacking(target, entry)
    return Carried((whole_line(entry, "as the times of the steps"),), given={"times": list(artefact.times)})
