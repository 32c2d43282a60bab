"""Sheets of paper with charts on them, what becomes of the charts, and painters that stand whatever they are given: an
exception while a widget is painted would end the application."""

import gc
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.figures.glyphs import SERIES_ON_ANY, Glyphs, marks_in_turn
from paretone.figures.scatter import Dimension, Scale
from paretone.measure.decoding import PositionAcceptance, SpokenToken
from paretone.measure.metrics import LOWER
from paretone.models.files.layer_importance import DIVERGENCE, LayerImportance
from paretone.sampling.actions import SkipAction
from paretone.setting.take import Measurements
from paretone.views.figure import Axis, Bars, BarSeries, Curve, Figure, HeatMap, Lines
from paretone_app.features.attention.panel import AttentionPlot, ColourBar, SimilarityGrid
from paretone_app.features.decoding.panel import AcceptancePlot, RunningPlot
from paretone_app.features.decoding.token_strip import TokenStrip
from paretone_app.features.demasking.grid import DemaskingGrid
from paretone_app.features.demasking.panel import StepBars
from paretone_app.features.layers.layer_bars import LayerBars
from paretone_app.features.meters.panel import PartsBar
from paretone_app.features.strategy.grid import StrategyGrid
from paretone_app.features.threshold.panel import Histogram, SharePlot
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.curves import CurveChart, Series, magnitude_map
from paretone_app.plotting.files import comma_separated, svg
from paretone_app.plotting.sheet import Sheet, write_figure
from paretone_app.shell.colours import LIGHT
from tests.app.conftest import on_screen
from tests.app.features.demasking.test_panel import passage
from tests.app.features.layers.test_panel import RECORD
from tests.engine.views.test_figure import figure as of


class Plain(Chart):
    def cursor_text(self) -> str:
        return ""


def sheet(lines: int = 3) -> Sheet:
    made = Sheet(600, LIGHT, QApplication.font())
    chart = Plain("Plain", LIGHT, on_paper=True)
    chart.frame.bottom.set_title(Dimension("Seconds (s)", better=LOWER))
    chart.frame.set_scales(Scale(0.0, 10.0), Scale(0.001, 1000.0, True))
    made.title("A title")
    made.charts([chart, Plain("Another", LIGHT, on_paper=True)], 200)
    glyphs = Glyphs(marks_in_turn(("one", "two")), SERIES_ON_ANY, LIGHT.text)
    made.legend([(glyphs.glyph((name,)), f"{name} of the techniques, whose name is long") for name in ("one", "two")])
    made.heading("Heading", LIGHT.text)
    made.row(("left", "1", "right"), (0.4, 0.3, 0.3), LIGHT.text)
    for _ in range(lines):
        made.line("A line that is longer than the sheet is wide and is cut off therefore. " * 4)
    made.paragraph("A paragraph that goes on. " * 20)
    return made


def test_everything_stands_on_it_in_letters(qtbot: QtBot) -> None:
    root = ElementTree.fromstring(sheet().svg("Title", "Description").decode())
    texts = " ".join(one.strip() for one in root.itertext())
    for said in ("A title", "Heading", "left", "right", "Seconds (s)", "←", "0.01", "100", "…", "goes on."):
        assert said in texts, said


def test_charts_end_with_their_sheet_whoever_collects_them(qtbot: QtBot) -> None:
    before = len(QApplication.topLevelWidgets())
    sheet().png()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(QApplication.topLevelWidgets()) == before
    collector = threading.Thread(target=gc.collect)
    collector.start()
    collector.join()


@pytest.mark.usefixtures("qapp")
def test_control_characters_in_labels_leave_a_drawing_that_can_be_read() -> None:
    name = "a\x01b\x1b[31m\x08<c>"
    drawn = svg(QSize(99, 99), lambda painter: QPainter.drawText(painter, 5, 50, name), name, name)
    tree = ElementTree.fromstring(drawn)
    assert tree[0].text == "ab[31m<c>"
    assert "31m" in "".join(tree.itertext())


def test_a_name_that_is_no_text_is_written_as_a_table() -> None:
    assert comma_separated("a\ud800\tb") == b"a?,b\r\n"


VALUES = ((0.0, 0.25, 0.5), (0.75, 1.0, 0.5))
MAP = HeatMap("Map", Axis("Step"), Axis("Layer"), Axis("Similarity"), (1.0, 2.0, 3.0), (1.0, 2.0), VALUES)
LINES = Lines("Curves", Axis("δ"), Axis("Rate", "%"), (Curve("full", (0.1, 0.2), (5.0, 6.0), (4.0, 5.0), (6.0, 7.0)),))
BARS = Bars("Bars", Axis("Table"), Axis("Time", "ms"), ("none", "δ = 1"), (BarSeries("b", (2.0, 1.0)),))


@pytest.fixture
def figure() -> Figure:
    return of(MAP, LINES, BARS)


def test_svg_says_everything_in_letters(figure: Figure, tmp_path: Path, qtbot: QtBot) -> None:
    path = tmp_path / "figure.svg"
    write_figure(figure, path)
    root = ElementTree.parse(path).getroot()
    text = " ".join("".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text"))
    for said in ("Title", "Question?", "What is to be seen.", "Rate (%)", "Time (ms)", "Similarity", "Map", "seed 0"):
        assert said in text
    table = magnitude_map(LIGHT).getLookupTable(nPts=256, alpha=False)
    content = path.read_text(encoding="utf-8").lower()
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert QColor(*map(int, table[round(value * 255)])).name() in content


def test_png_is_drawn_in_the_values_colours(figure: Figure, tmp_path: Path, qtbot: QtBot) -> None:
    path = tmp_path / "figure.png"
    write_figure(figure, path)
    image = QImage(str(path))
    assert image.width() > 1500
    darkest = QColor(*map(int, magnitude_map(LIGHT).getLookupTable(nPts=256, alpha=False)[255])).name()
    seen = {image.pixelColor(x, y).name() for x in range(0, image.width(), 8) for y in range(0, image.height(), 8)}
    assert {darkest, LIGHT.base} <= seen


def test_what_cannot_be_written_is_said(figure: Figure, tmp_path: Path, qtbot: QtBot) -> None:
    write_figure(figure, tmp_path / "figure.csv")
    assert (tmp_path / "figure.csv").read_text(encoding="utf-8") == figure.to_csv()
    with pytest.raises(PlainError, match="ends in none of"):
        write_figure(figure, tmp_path / "figure.bmp")
    with pytest.raises(PlainError, match="its folder does not exist"):
        write_figure(figure, tmp_path / "missing" / "figure.csv")


# --- Odd data ---------------------------------------------------------------------------------------------------------
# What is raised in a paint event fails a test: pytest-qt catches it.
NOWHERE = (np.nan, np.inf, -np.inf)


def token_strip(made: TokenStrip) -> None:
    made.show_tokens([SpokenToken(0.0, 7, "accepted", 0, ())], 25.0)
    for position in NOWHERE:
        made.set_position(position)
        made.grab()


def demasking_grid(made: DemaskingGrid) -> None:
    made.show_passage(passage(), 5.0, LIGHT.accent)  # No time fits between two of its frames.
    made.grab()
    odd = passage()
    made.show_passage(replace(odd, probability=np.full_like(odd.probability, np.nan)), 0.04, LIGHT.accent)
    made.grab()
    empty = {"codes": odd.codes[:, :0], "order": odd.order[:, :0], "probability": odd.probability[:, :0]}
    made.show_passage(replace(odd, **empty), 0.04, LIGHT.accent)
    for position in NOWHERE:
        made.set_position(position)


def step_bars(made: StepBars) -> None:
    made.show_counts((0, 0, 0), LIGHT.accent)


def parts_bar(made: PartsBar) -> None:
    made.show_measurements(Measurements(np.nan, 0.0, np.nan, 0.0, np.inf, 0.0, 0.0), np.nan)


def colour_bar(made: ColourBar) -> None:
    for ends in ((0.0, 0.0), (np.nan, np.nan), (-1.0, np.inf)):
        made.set_ends(ends, logarithmic=True)
        made.grab()


def similarity_grid(made: SimilarityGrid) -> None:
    made.show_captured((1, 7))
    made.show_similarities(np.full((3, 0), np.nan), None)
    made.grab()
    made.show_similarities(np.array([[np.nan, np.inf, 0.5]] * 3), np.nan)


def strategy_grid(made: StrategyGrid) -> None:
    made.show_actions(np.zeros((4, 0), np.int8))
    made.grab()
    made.show_actions(np.zeros((2, 3), np.int8))
    made.light((1, 9))


def layer_bars(made: LayerBars) -> None:
    made.show_layers(0, None, ())
    made.grab()
    odd = LayerImportance(DIVERGENCE, (np.nan, np.inf, 0.0, -1.0), (np.nan,) * 4, (np.inf,) * 4)
    made.show_layers(4, RECORD.with_measure(odd), (0,))
    made.grab()
    made.set_logarithmic(True)


def acceptance(made: AcceptancePlot) -> None:
    made.show_positions([PositionAcceptance(0, 3, 0, 0)])


def running(made: RunningPlot) -> None:
    made.show_points((0.0, np.nan), (np.inf, np.nan), np.nan)


def curves(made: CurveChart) -> None:
    series = [Series("odd", np.array([0.0, 1.0, np.nan]), np.array([np.inf, np.nan, 1.0]), LIGHT.accent, mark="circle")]
    for ends in ((0.0, 0.0), (np.nan, 1.0), (0.0, np.inf), (1.0, 1.0 + 1e-16)):
        for logarithmic in (False, True):
            made.show_series(series, Scale(*ends, logarithmic), Scale(*ends, logarithmic))
            made.grab()


def histogram(made: Histogram) -> None:
    counts = dict.fromkeys((SkipAction.TS, SkipAction.BS), np.zeros(1, int))
    made.show_counts(Scale(0.0, np.inf), np.array([0.0, 1.0]), counts)
    made.show_threshold(np.nan, (np.nan, np.inf))


def share(made: SharePlot) -> None:
    made.share = np.nan
    made.show_curve(Scale(0.0, 0.0), np.array([np.nan]), np.array([np.inf]))
    made.show_threshold(np.inf, None)


def attention(made: AttentionPlot) -> None:
    made.show_map(np.zeros((2, 2)), (0.0, 0.0), logarithmic=False)
    made.show_axes(0.0, 0.0, "frame", titled=True)


SHOWN = (
    *(token_strip, demasking_grid, step_bars, parts_bar, colour_bar, similarity_grid, strategy_grid, layer_bars),
    *(acceptance, running, curves, histogram, share, attention),
)
NAMED = {PartsBar: ("Seconds",), ColourBar: ("Colours",), CurveChart: ("Odd", Dimension("x"), Dimension("y"))}


@pytest.mark.parametrize("odd", SHOWN)
def test_odd_data_and_tiny_sizes_are_painted(qtbot: QtBot, odd: Callable) -> None:
    kind = get_type_hints(odd)["made"]
    made = kind(*NAMED.get(kind, ()), LIGHT)
    odd(made)
    on_screen(made, qtbot)
    for width, height in ((0, 0), (1, 1), (3, 200), (200, 3), (300, 200)):
        made.resize(width, height)
        made.grab()
