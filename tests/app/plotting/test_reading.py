"""Values read at a point of a figure are the figure's values there."""

from __future__ import annotations

import math

import pytest

from paretone.views.figure import Axis, Bars, BarSeries, Curve, HeatMap, Lines
from paretone_app.plotting.plots import bar_centre, nearest, position, shape, within, words

MAP = HeatMap(
    "Attention", Axis("Step"), Axis("Layer"), Axis("Similarity"), (1.0, 2.0, 3.0), (1.0, 2.0),
    ((0.1, 0.2, math.nan), (0.4, 0.5, 0.6)),
)  # fmt: skip
LINES = Lines(
    "Costs",
    Axis("Operations", "%"),
    Axis("Distance"),
    (Curve("full", (50.0, 80.0), (0.3, 0.1), notes=("δ = 0.2", "δ = 0.1")), Curve("floor", (50.0,), (0.05,))),
)
ORDERS = Lines(
    "Error",
    Axis("Steps", logarithmic=True),
    Axis("Error", logarithmic=True),
    (Curve("Euler", (4.0, 8.0, 16.0), (1e-1, 1e-2, 1e-3)), Curve("Heun", (8.0, 16.0), (1e-4, 1e-6))),
)
BARS = Bars(
    "Time", Axis("Table"), Axis("Latency", "ms"), ("none", "δ = 1"),
    (BarSeries("a", (4.0, 2.0), (3.0, 1.0), (5.0, 3.0)), BarSeries("b", (1.0, 0.5))),
)  # fmt: skip


def test_points_in_words() -> None:
    assert words(MAP, 1, 2) == "Attention. Layer 2, step 3: 0.6"
    assert words(MAP, 0, 2) == "Attention. Layer 1, step 3: not measured"
    assert words(LINES, 0, 1) == "full, 80 %: 0.1, δ = 0.1"
    assert words(BARS, 0, 1) == "a, δ = 1: 2 ms (95 % interval 1 to 3)"


def test_kinds_are_named() -> None:
    kinds = HeatMap("δ", Axis("Step"), Axis("Layer"), Axis("Action"), (1.0,), (1.0,), ((1.0,),), ("compute", "skip"))
    assert words(kinds, 0, 0).endswith("skip")


def test_there_is_no_point_outside() -> None:
    assert shape(LINES) == (2, 2)
    assert within(LINES, 5, 5) == (1, 0), "the second curve has one point"
    assert within(MAP, -1, 9) == (0, 2)


@pytest.mark.parametrize("panel", [MAP, LINES, BARS])
def test_the_nearest_point_to_a_point_is_itself(panel: object) -> None:
    rows, columns = shape(panel)
    for row in range(rows):
        for column in range(columns):
            if within(panel, row, column) == (row, column):
                x, y = position(panel, row, column)
                assert nearest(panel, x + 0.01, y, 10, 1) == (row, column)


def test_on_logarithmic_axes_places_are_logarithms() -> None:
    for row, column in ((0, 0), (0, 2), (1, 1)):
        x, y = (math.log10(one) for one in position(ORDERS, row, column))
        assert nearest(ORDERS, x + 0.01, y - 0.2, 1, 5) == (row, column)


def test_bars_stand_side_by_side() -> None:
    assert bar_centre(BARS, 0, 1) < 1 < bar_centre(BARS, 1, 1)
    assert nearest(BARS, bar_centre(BARS, 1, 0), 99.0, 2, 5) == (1, 0), "also above the bar"
