"""Values of a figure's panel in words, and their places. Without Qt.

The points of a panel are a grid: the cells of a heat map, else one row for each series.
"""

from __future__ import annotations

import math

import numpy as np

from paretone.views.figure import Axis, Bars, BarSeries, Curve, HeatMap, Lines, Panel
from paretone_app.numbers import general


def shape(panel: Panel) -> tuple[int, int]:
    """Rows of points and the most points in a row."""
    if isinstance(panel, HeatMap):
        return len(panel.rows), len(panel.columns)
    if isinstance(panel, Bars):
        return len(panel.series), len(panel.groups)
    return len(panel.curves), max((len(curve.x) for curve in panel.curves), default=0)


def within(panel: Panel, row: int, column: int) -> tuple[int, int]:
    """The nearest point that there is."""
    rows, columns = shape(panel)
    row = min(max(row, 0), rows - 1)
    if isinstance(panel, Lines):
        columns = len(panel.curves[row].x)
    return row, min(max(column, 0), columns - 1)


def position(panel: Panel, row: int, column: int) -> tuple[float, float]:
    """Position of a point, in the panel's units; bars are side by side around whole numbers."""
    if isinstance(panel, HeatMap):
        return panel.columns[column], panel.rows[row]
    if isinstance(panel, Bars):
        return bar_centre(panel, row, column), panel.series[row].values[column]
    curve = panel.curves[row]
    return curve.x[column], curve.y[column]


GROUP_WIDTH = 0.8
"""Width of a group of bars as a share of the distance between groups."""


def bar_centre(panel: Bars, row: int, column: int) -> float:
    """Centre of a bar."""
    return column + GROUP_WIDTH * ((row + 0.5) / len(panel.series) - 0.5)


def words(panel: Panel, row: int, column: int) -> str:
    """A point with its value, interval and note."""
    if isinstance(panel, HeatMap):
        value = panel.values[row][column]
        place = f"{_at(panel.y, panel.rows[row])}, {_at(panel.x, panel.columns[column]).lower()}"
        if panel.categories:
            return f"{panel.title}. {place}: {panel.categories[int(value)]}"
        return f"{panel.title}. {place}: {_value(panel.colour, value)}"
    one: BarSeries | Curve
    if isinstance(panel, Bars):
        one, value = panel.series[row], panel.series[row].values[column]
        head = f"{one.name}, {panel.groups[column]}"
    else:
        one, value = panel.curves[row], panel.curves[row].y[column]
        head = f"{one.name}, {_value(panel.x, panel.curves[row].x[column])}"
    text = f"{head}: {_value(panel.y, value)}"
    if one.low and math.isfinite(one.low[column]):
        text += f" (95 % interval {general(one.low[column], 4)} to {general(one.high[column], 4)})"
    return f"{text}, {one.notes[column]}" if one.notes else text


def nearest(panel: Panel, x: float, y: float, width: float, height: float) -> tuple[int, int]:
    """The point nearest to a place; ``width`` and ``height`` are what is visible, so that both axes count alike. All
    are in what the axes are even in: figures, or their logarithms."""
    rows, columns = shape(panel)
    points = (
        (row, column) for row in range(rows) for column in range(columns) if within(panel, row, column)[1] == column
    )

    def far(point: tuple[int, int]) -> float:
        places = zip((panel.x, panel.y), position(panel, *point), strict=True)
        across, up = (float(axis.even(np.array(figure))) for axis, figure in places)
        # Anywhere in a bar's column is at the bar.
        vertical = 0.0 if isinstance(panel, Bars) else (up - y) / height
        distance = ((across - x) / width) ** 2 + vertical**2
        return distance if math.isfinite(distance) else math.inf

    return min(points, key=far)


def _at(axis: Axis, value: float) -> str:
    return f"{axis.title} {general(value)}"


def _value(axis: Axis, value: float) -> str:
    if not math.isfinite(value):
        return "not measured"
    unit = f" {axis.unit}" if axis.unit and axis.unit != "natural-log units" else ""
    return f"{general(value, 4)}{unit}"
