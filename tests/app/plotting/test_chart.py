"""Every chart has a table twin, labels that do not overlap, and a look that follows theme and font."""

import csv
import itertools
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.figures.scatter import Scale
from paretone.measure.decoding import PositionAcceptance
from paretone.views.figure import Axis, Bars, BarSeries, Curve, Figure, HeatMap, Lines
from paretone_app.features.decoding.panel import AcceptancePlot, RunningPlot
from paretone_app.features.layers.layer_bars import LayerBars
from paretone_app.features.roofline.plots import RooflinePlot, Waterfall
from paretone_app.plotting import plots
from paretone_app.plotting.canvas import FigureCanvas
from paretone_app.plotting.chart import Chart, TableTwin
from paretone_app.plotting.plots import bar_centre, nearest, position, shape, whole_numbers, within, words
from paretone_app.plotting.words import Label, Labels, Legend, next_to
from paretone_app.shell.colours import DARK, LIGHT
from tests.app.acting import items
from tests.app.conftest import in_front, on_screen
from tests.app.features.layers.test_panel import RECORD
from tests.app.features.roofline.test_panel import report
from tests.engine.views.test_figure import figure as of


class Plain(Chart):
    def cursor_text(self) -> str:
        return "Nothing"

    def as_text(self) -> str:
        return "x\ty\n1\t2"


def made(kind: type[Chart]) -> Chart:
    chart = Plain("Plain", LIGHT) if kind is Plain else kind(LIGHT)
    match chart:
        case RooflinePlot() | Waterfall():
            chart.show_reports({"A": report(), "B": None})
        case LayerBars():
            chart.show_layers(4, RECORD, (0, 3))
        case AcceptancePlot():
            chart.show_positions([PositionAcceptance(place, 10, 8, 4) for place in range(3)])
        case RunningPlot():
            chart.show_points((0.5, 1.0), (2.0, 3.0), 2.5)
    return chart


@pytest.mark.parametrize("kind", [Plain, RooflinePlot, Waterfall, LayerBars, AcceptancePlot, RunningPlot])
def test_every_chart_can_be_read_as_a_table(qtbot: QtBot, kind: type[Chart]) -> None:
    chart = on_screen(made(kind), qtbot)
    QTest.keyClick(chart, Qt.Key.Key_T)
    twin = chart.findChild(TableTwin)
    lines = [line.split("\t") for line in chart.as_text().splitlines()]
    shown = [[twin.table.item(row, place).text() for place in range(len(lines[0]))] for row in range(len(lines) - 1)]
    assert shown == lines[1:] and shown
    assert twin.table.accessibleName() == chart.accessibleName() and chart.accessibleName()
    QTest.keyClick(twin, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == chart.as_text()
    QTest.keyClick(twin.table, Qt.Key.Key_Escape)
    assert not twin.isVisible()


@pytest.mark.parametrize("kind", [Plain, LayerBars])
def test_a_chart_saves_itself_as_it_is_shown(qtbot: QtBot, kind: type[Chart], tmp_path: Path) -> None:
    chart = on_screen(made(kind), qtbot, 500, 300)
    titles = [action.text() for action in chart.actions()]
    assert titles[2:] == ["Save as SVG…", "Save as PNG…", "Save as CSV…"]
    for ending in ("svg", "png", "csv"):
        chart.write(tmp_path / f"chart.{ending}")
    picture = QImage(str(tmp_path / "chart.png"))
    assert (picture.width(), picture.height()) == (1000, 600)
    drawn = (tmp_path / "chart.svg").read_text()
    assert f"<title>{chart.accessibleName()}</title>" in drawn and "<image" not in drawn, "all of it is shapes"
    with (tmp_path / "chart.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [line.split("\t") for line in chart.as_text().splitlines()]
    with pytest.raises(PlainError, match=r"chart\.gif"):
        chart.write(tmp_path / "chart.gif")


@pytest.mark.parametrize("kind", [Waterfall, RunningPlot])
def test_theme_and_font_are_followed_and_the_focus_is_seen(qtbot: QtBot, kind: type[Chart]) -> None:
    chart = in_front(made(kind), qtbot, 500, 360)
    chart.clearFocus()
    light = chart.grab().toImage()
    chart.set_colours(DARK)
    assert chart.grab().toImage().pixelColor(1, 1).lightness() < 60 < light.pixelColor(1, 1).lightness()
    chart.set_colours(LIGHT)
    assert chart.grab().toImage() == light
    chart.setFocus()
    qtbot.waitUntil(chart.hasFocus)
    focused = chart.grab().toImage()
    chart.clearFocus()
    assert chart.grab().toImage() != focused
    font = chart.font()
    font.setPointSizeF(1.5 * font.pointSizeF())
    before = chart.frame.em
    chart.setFont(font)
    assert chart.frame.em > 1.3 * before


def test_words_keep_clear_of_each_other_of_points_and_of_the_edge(qtbot: QtBot) -> None:
    chart = on_screen(made(Plain), qtbot, 400, 300)
    chart.frame.set_scales(Scale(0.0, 10.0), Scale(0.0, 10.0))
    places = [chart.frame.place(*one) for one in ((5, 5), (5.2, 5.1), (5.1, 4.9), (0.1, 9.9), (9.9, 0.1))]
    words = Labels(chart.frame, 1)
    words.labels = lambda: [
        Label(f"word {number}", LIGHT.text, partial(next_to, place, 8.0)) for number, place in enumerate(places)
    ]
    words.covers = lambda spot: any(spot.contains(place) for place in places)
    spots = [spot for _, spot in words.placed]
    assert len(spots) >= 4
    assert not any(one.intersects(other) for one, other in itertools.combinations(spots, 2))
    assert all(chart.frame.area.adjusted(-1, -1, 1, 1).contains(one) for one in spots)
    words.labels = lambda: [Label("must", LIGHT.text, lambda _size: [QRectF(-50, -50, 10, 10)], always=True)]
    words.redraw()
    assert [spot.topLeft() for _, spot in words.placed] == [QPointF(-50, -50)], "what must stand stands anywhere"


def test_a_frame_maps_figures_both_ways_up(qtbot: QtBot) -> None:
    chart = on_screen(made(Plain), qtbot, 400, 300)
    frame = chart.frame
    frame.left.choose = partial(whole_numbers, 1.0, 4.0)
    for across, up in ((Scale(1.0, 100.0, True), Scale(0.0, 4.0)), (Scale(0.0, 4.0), Scale(22.5, 0.5))):
        frame.set_scales(across, up)
        corner = frame.place(across.low, up.low)
        assert (corner - frame.area.bottomLeft()).manhattanLength() < 1e-6
        even = float(across.even(np.array(across.high))), float(up.even(np.array(up.high)))
        view = frame.view.mapToParent(frame.view.mapFromView(QPointF(*even)))
        assert (view - frame.place(across.high, up.high)).manhattanLength() < 1.5, "curves lie where points lie"


def test_whole_numbers_are_evenly_apart_and_begin_with_one() -> None:
    assert whole_numbers(1.0, 16.0, 20) == [float(one) for one in range(1, 17)]
    assert whole_numbers(1.0, 529.0, 4) == [1.0, 201.0, 401.0]
    assert whole_numbers(1.0, 22.0, 8) == [1.0, 4.0, 7.0, 10.0, 13.0, 16.0, 19.0, 22.0]
    assert whole_numbers(3.0, 5.0, 10) == [3.0, 4.0, 5.0]


# --- Figures on a small canvas ----------------------------------------------------------------------------------------
STEPS = tuple(map(float, range(1, 17)))
TITLE = "Feed-forward: conditional and unconditional"
MAP = HeatMap(TITLE, Axis("Step"), Axis("Layer"), Axis("Similarity"), STEPS, (1.0, 2.0), (STEPS, STEPS))
LINES = Lines("Curves", Axis("w"), Axis("Distance"), (Curve("a long name of a curve", (0.5, 0.67), (0.25, 0.5)),) * 3)


def shown(qtbot: QtBot, figure: Figure, width: int, height: int) -> FigureCanvas:
    canvas = FigureCanvas(LIGHT)
    canvas.show_figure(figure)
    on_screen(canvas, qtbot, width, height)
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
    canvas, scales = shown(qtbot, of(LINES), 900, 700), []
    for size in ((900, 700), (200, 150), (900, 700)):
        canvas.resize(*size)
        QApplication.processEvents()
        scales.append(canvas.view.transform().m11())
    assert scales[0] == scales[2] == 1.0 and scales[1] < 0.8


def test_a_shrunk_figure_is_read_where_the_mouse_is(qtbot: QtBot) -> None:
    canvas = shown(qtbot, replace(of(MAP, MAP), across=2), 430, 240)
    said: list[str] = []
    canvas.read.connect(said.append)
    frame = canvas.plots[1]
    place = canvas.view.mapFromScene(frame.mapToScene(frame.place(9.0, 2.0)))
    QTest.mouseMove(canvas, place)
    assert said and said[-1].startswith(f"{TITLE}. Layer 2, step 9")


@pytest.mark.parametrize(("heights", "corner"), [((0.0, 1.0), (-1, 1)), ((1.0, 1.0), (1, -1))])
def test_a_legend_stands_where_no_curve_runs(
    qtbot: QtBot, heights: tuple[float, float], corner: tuple[int, int]
) -> None:
    floor = Curve("floor", (0.0,), (0.0,))
    panel = Lines("Curves", Axis("x"), Axis("y"), (Curve("a", (0.0, 1.0), heights), floor))
    canvas = shown(qtbot, of(panel), 900, 700)
    (legend,), area = items(canvas, Legend), canvas.plots[0].area
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
    inner = FigureCanvas(LIGHT, owner)
    inner.show_figure(of(MAP))
    on_screen(owner, qtbot)
    qtbot.keyClick(inner, Qt.Key.Key_Right)
    qtbot.keyClick(inner, Qt.Key.Key_Escape)
    assert inner.isVisible() and inner.windowTitle() == ""


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
