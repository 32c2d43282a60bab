"""The points of the trade-off view as a table. Free of Qt."""

from __future__ import annotations

import json

from paretone.tables import comma_separated
from paretone_app.features.tradeoff.model.axes import AXES
from paretone_app.features.tradeoff.model.scene import Scene
from paretone_app.results.points import Point


def table(shown: Scene, delimiter: str = ",") -> str:
    """One row for each point that is shown, from left to right: every figure with its interval and number of takes."""
    rows: list[list[object]] = []
    there = {name for one in shown.points for name in one.figures}
    names = [one.name for one in AXES if one.name in there]
    # Of papers, there may be figures that nobody measures here.
    names += sorted(there - set(names))
    head = ["title", "kind", "source", "model", "techniques", "front", "busy_takes", *_places(shown)]
    columns = [f"{name}{suffix}" for name in names for suffix in ("", "_low", "_high", "_n")]
    judged = [name for name in names if any(name in one.floors for one in shown.points)]
    columns += [f"{name}_of_reference_speech" for name in judged]
    rows.append([*head, *columns, "setting", "machines", "remarks"])
    for index in shown.across:
        one = shown.points[index]
        cells: list[object] = []
        for name in names:
            figure = one.figures.get(name)
            cells += ["", "", "", ""] if figure is None else [figure.value, figure.low, figure.high, figure.n]
        cells += [one.floors[name].value if name in one.floors else "" for name in judged]
        places = [shown.x[index, 0], shown.y[index, 0]]
        rows.append(
            [
                *(
                    one.title,
                    one.kind,
                    one.source,
                    one.model,
                    "+".join(one.techniques),
                    int(index in shown.front),
                    one.busy,
                ),
                *(float(place) for place in places),
                *cells,
                _setting(one),
                "; ".join(one.machines),
                "; ".join(one.remarks),
            ]
        )
    return comma_separated(rows, delimiter)


def _places(shown: Scene) -> list[str]:
    axes = zip("xy", shown.options.axes, shown.logarithmic, strict=True)
    return [f"{side}{' (logarithmic)' * of}: {one.label(shown.options.ratios)}" for side, one, of in axes]


def _setting(one: Point) -> str:
    return "" if one.setting is None else json.dumps(one.setting.to_json(), sort_keys=True)
