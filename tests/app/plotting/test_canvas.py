"""Figures on a small canvas: nothing is cut off, and legends keep off the curves."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from paretone.views.figure import Axis, Bars, BarSeries, Curve, Figure, HeatMap, Lines
from paretone_app.plotting import plots
from paretone_app.plotting.canvas import FigureCanvas
from paretone_app.plotting.plots import bar_centre, nearest, position, shape, within, words
from paretone_app.shell.colours import LIGHT
from tests.engine.views.test_figure import figure as of

STEPS = tuple(map(float, range(1, 17)))
TITLE = "Feed-forward: conditional and unconditional"
MAP = HeatMap(TITLE, Axis("Step"), Axis("Layer"), Axis("Similarity"), STEPS, (1.0, 2.0), (STEPS, STEPS))
LINES = Lines("Curves", Axis("w"), Axis("Distance"), (Curve("a long name of a curve", (0.5, 0.67), (0.25, 0.5)),) * 3)


def shown(qtbot: QtBot, figure: Figure, width: int, height: int) -> FigureCanvas:
    canvas = FigureCanvas(LIGHT)
    qtbot.addWidget(canvas)
    canvas.resize(width, height)
    canvas.show_figure(figure)
    canvas.show()
    QApplication.processEvents()
    return canvas


@pytest.mark.parametrize("figure", [replace(of(*6 * [MAP]), across=3), replace(of(LINES, LINES), across=2)])
@pytest.mark.parametrize("size", [(430, 240), (900, 700)])
def test_all_of_a_figure_is_seen_at_any_size(qtbot: QtBot, figure: Figure, size: tuple[int, int]) -> None:
    canvas = shown(qtbot, figure, *size)
    seen = canvas.view.viewport().rect().adjusted(-1, -1, 1, 1)
    for plot in canvas.plots:
        assert seen.contains(canvas.view.mapFromScene(plot.sceneBoundingRect()).boundingRect())
        assert plot.area.width() > 60 and plot.area.height() > 60, "in units of the scene"


def test_a_large_canvas_draws_letters_at_their_own_size(qtbot: QtBot) -> None:
    canvas = shown(qtbot, of(LINES), 900, 700)
    assert canvas.view.transform().m11() == 1.0
    canvas.resize(200, 150)
    QApplication.processEvents()
    assert canvas.view.transform().m11() < 0.8
    canvas.resize(900, 700)
    QApplication.processEvents()
    assert canvas.view.transform().m11() == 1.0


def test_a_shrunk_figure_is_read_where_the_mouse_is(qtbot: QtBot) -> None:
    canvas = shown(qtbot, replace(of(MAP, MAP), across=2), 430, 240)
    said: list[str] = []
    canvas.read.connect(said.append)
    frame = canvas.plots[1]
    place = canvas.view.mapFromScene(frame.mapToScene(frame.place(9.0, 2.0)))
    QTest.mouseMove(canvas, place)
    assert said
    assert said[-1].startswith(f"{TITLE}. Layer 2, step 9")


@pytest.mark.parametrize(("heights", "corner"), [((0.0, 1.0), (-1, 1)), ((1.0, 1.0), (1, -1))])
def test_a_legend_stands_where_no_curve_runs(
    qtbot: QtBot, heights: tuple[float, float], corner: tuple[int, int]
) -> None:
    floor = Curve("floor", (0.0,), (0.0,))
    panel = Lines("Curves", Axis("x"), Axis("y"), (Curve("a", (0.0, 1.0), heights), floor))
    canvas = shown(qtbot, of(panel), 900, 700)
    legend, area = canvas._panels[0].legend, canvas.plots[0].area
    assert legend.corner == corner
    middle = legend.box.center() - area.center()
    assert (middle.x() > 0, middle.y() < 0) == (corner[0] > 0, corner[1] > 0) and area.contains(legend.box)


def test_a_window_of_its_own_is_read_and_closed_by_keys(qtbot: QtBot) -> None:
    canvas = shown(qtbot, of(MAP), 430, 240)
    qtbot.keyClick(canvas, Qt.Key.Key_Right)
    qtbot.keyClick(canvas, Qt.Key.Key_Right)
    figure, words = canvas.figure, plots.words(MAP, 0, 1)
    assert canvas.windowTitle() == f"{figure.title} of {figure.provenance.model}: {words}"
    assert canvas.accessibleDescription() == words
    qtbot.keyClick(canvas, Qt.Key.Key_Escape)
    assert not canvas.isVisible()
    # Within a panel both are the panel's.
    owner = QWidget()
    qtbot.addWidget(owner)
    inner = FigureCanvas(LIGHT, owner)
    inner.show_figure(of(MAP))
    owner.show()
    qtbot.keyClick(inner, Qt.Key.Key_Right)
    qtbot.keyClick(inner, Qt.Key.Key_Escape)
    assert inner.isVisible()
    assert inner.windowTitle() == ""


ATTENTION = HeatMap(
    "Attention", Axis("Step"), Axis("Layer"), Axis("Similarity"), (1.0, 2.0, 3.0), (1.0, 2.0),
    ((0.1, 0.2, math.nan), (0.4, 0.5, 0.6)),
)  # fmt: skip
COSTS = Lines(
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
    assert words(ATTENTION, 1, 2) == "Attention. Layer 2, step 3: 0.6"
    assert words(ATTENTION, 0, 2) == "Attention. Layer 1, step 3: not measured"
    assert words(COSTS, 0, 1) == "full, 80 %: 0.1, δ = 0.1"
    assert words(BARS, 0, 1) == "a, δ = 1: 2 ms (95 % interval 1 to 3)"
    assert within(COSTS, 5, 5) == (1, 0), "the second curve has one point"
    assert within(ATTENTION, -1, 9) == (0, 2)
    assert nearest(BARS, bar_centre(BARS, 1, 0), 99.0, 2, 5) == (1, 0), "also above the bar"


@pytest.mark.parametrize("panel", [ATTENTION, COSTS, BARS])
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
