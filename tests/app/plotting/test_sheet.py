"""Sheets of paper with charts on them, and what becomes of the charts."""

from __future__ import annotations

import gc
import threading
from xml.etree import ElementTree

from PySide6.QtCore import QEvent
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.figures.glyphs import SERIES_ON_ANY, Glyphs, marks_in_turn
from paretone.figures.scales import Scale
from paretone.figures.scatter import Dimension
from paretone.measure.metrics import LOWER
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.sheet import Sheet
from paretone_app.shell.colours import LIGHT


class Plain(Chart):
    """Axes and nothing else."""

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


def test_it_is_as_high_as_what_is_on_it(qtbot: QtBot) -> None:
    low, high = (QImage.fromData(sheet(lines).png()) for lines in (1, 9))
    assert low.width() == high.width() == 1200
    assert high.height() - low.height() == 2 * 8 * 18


def test_charts_end_with_their_sheet_whoever_collects_them(qtbot: QtBot) -> None:
    before = len(QApplication.topLevelWidgets())
    sheet().png()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(QApplication.topLevelWidgets()) == before
    collector = threading.Thread(target=gc.collect)
    collector.start()
    collector.join()
