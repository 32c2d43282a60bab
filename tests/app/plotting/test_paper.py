"""Figures as files: SVG with text and cells, PNG with the colours of the values, CSV with every value."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.views.figure import Axis, Bars, BarSeries, Curve, Figure, HeatMap, Lines
from paretone_app.plotting.curves import magnitude_map
from paretone_app.plotting.sheet import write_figure
from paretone_app.shell.colours import LIGHT
from tests.engine.views.test_figure import figure as of

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
    assert darkest in seen
    assert LIGHT.base in seen


def test_csv_is_the_figures_own(figure: Figure, tmp_path: Path) -> None:
    path = tmp_path / "figure.csv"
    write_figure(figure, path)
    assert path.read_text(encoding="utf-8") == figure.to_csv()


def test_what_cannot_be_written_is_said(figure: Figure, tmp_path: Path, qtbot: QtBot) -> None:
    with pytest.raises(PlainError, match="ends in none of"):
        write_figure(figure, tmp_path / "figure.bmp")
    with pytest.raises(
        PlainError, match=r"could not be written: its folder does not exist; create it or choose another\.$"
    ):
        write_figure(figure, tmp_path / "missing" / "figure.csv")
