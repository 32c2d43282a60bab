"""Panels are where their places say, one entry each."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMainWindow, QWidget
from pytestqt.qtbot import QtBot

from app.features.registry import FEATURES
from app.shell.docks import Docks
from app.shell.places import Place, Region
from app.shell.window import MainWindow
from app.widgets.shrinkable import Shrinkable

PLACES = tuple(place for feature in FEATURES for place in feature.places)


@pytest.fixture
def host(qtbot: QtBot) -> QMainWindow:
    made = QMainWindow()
    qtbot.addWidget(made)
    made.resize(1440, 900)
    made.show()
    return made


def test_places_of_a_region_are_tabs_with_the_first_in_front(host: QMainWindow, qtbot: QtBot) -> None:
    docks = Docks(host, PLACES)
    docks.default_layout()
    first = {}
    for place, dock in docks:
        first.setdefault(place.region, dock)
        tabs = set(host.tabifiedDockWidgets(dock)) | {dock}
        assert tabs == {docks[one.name] for one in PLACES if one.region is place.region}
    qtbot.waitUntil(lambda: not any(dock.visibleRegion().isEmpty() for dock in first.values()))

    def in_their_places() -> None:
        centre, below = first[Region.CENTRE].geometry(), first[Region.BELOW].geometry()
        assert first[Region.LEFT].x() < centre.x() == below.x() < first[Region.RIGHT].x()
        assert centre.bottom() < below.top()

    qtbot.waitUntil(in_their_places)


def test_a_new_panel_is_one_more_place(host: QMainWindow, qtbot: QtBot) -> None:
    docks = Docks(host, (*PLACES, Place("another", "Another", Region.CENTRE)))
    docks.default_layout()
    panel = QLineEdit()
    docks.put("another", panel)
    docks.go_to("another")
    assert docks.panels == {"another": panel}
    assert docks["another"] in host.tabifiedDockWidgets(docks["strategy"])
    host.activateWindow()
    qtbot.waitUntil(panel.hasFocus)


def test_a_panel_at_the_foot_is_a_bar_below_all_docks(host: QMainWindow, qtbot: QtBot) -> None:
    docks = Docks(host, (*PLACES, Place("foot", "Foot", Region.FOOT)))
    docks.default_layout()
    panel = QLineEdit()
    docks.put("foot", panel)
    assert docks.panels == {"foot": panel}
    assert "foot" not in {place.name for place, _ in docks}
    qtbot.waitUntil(lambda: panel.isVisible() and panel.width() > 0.9 * host.width())
    top = panel.mapTo(host, QPoint(0, 0)).y()
    assert all(dock.geometry().bottom() < top for _, dock in docks if dock.isVisible())
    assert docks.saved() and not docks["log"].isHidden()
    host.activateWindow()
    docks.go_to("foot")
    qtbot.waitUntil(panel.hasFocus)


def test_a_layout_saved_with_other_panels_is_passed_over(host: QMainWindow) -> None:
    docks = Docks(host, PLACES)
    docks.default_layout()
    docks["log"].hide()
    own = docks.saved()
    docks.default_layout()
    docks.restore(own)
    assert docks["log"].isHidden()
    other = QMainWindow()
    more = Docks(other, (*PLACES, Place("another", "Another", Region.CENTRE)))
    more.default_layout()
    more["log"].hide()
    docks.restore(more.saved())
    assert not docks["log"].isHidden()
    docks.restore(None)
    assert not docks["log"].isHidden()


def test_one_panel_alone_leaves_the_saved_layout_as_it_was(host: QMainWindow, qtbot: QtBot) -> None:
    docks = Docks(host, PLACES)
    docks.default_layout()
    docks["log"].hide()
    docks["layers"].raise_()
    before = docks.saved()
    docks.show_only("lab")
    assert [place.name for place, dock in docks if not dock.isHidden()] == ["lab"]
    assert docks.saved() == before, "what is kept between sessions is the whole layout"
    docks.show_as_before()
    assert [place.name for place, dock in docks if dock.isHidden()] == ["log"]
    qtbot.waitUntil(lambda: not docks["layers"].visibleRegion().isEmpty())
    docks["takes"].hide()
    docks.show_as_before()
    assert docks["takes"].isHidden(), "nothing to bring back"


def test_one_panel_alone_stays_so_when_another_family_is_chosen(host: QMainWindow, qtbot: QtBot) -> None:
    docks = Docks(host, PLACES)
    docks.default_layout()
    docks.suit("flow")
    docks.show_only("lab")
    docks.suit("language")
    assert [place.name for place, dock in docks if not dock.isHidden()] == ["lab"]
    assert docks.family == "flow", "what is kept between sessions belongs to the kept layout"
    docks.show_as_before()
    assert docks.family == "language"
    assert docks["strategy"].isHidden() and not docks["decoding"].isHidden()


def test_panels_that_a_family_has_nothing_for_do_not_stand_in_the_way(host: QMainWindow, qtbot: QtBot) -> None:
    docks = Docks(host, PLACES)
    docks.default_layout()
    qtbot.waitUntil(lambda: not docks["strategy"].visibleRegion().isEmpty())
    docks.suit("language")
    assert docks["strategy"].isHidden()
    assert not docks["views"].isHidden(), "what concerns all stays"
    qtbot.waitUntil(lambda: not docks["decoding"].visibleRegion().isEmpty())
    docks.go_to("strategy")
    assert not docks["strategy"].isHidden(), "it is there for whoever asks for it"
    docks.suit("flow")
    assert docks["decoding"].isHidden()
    docks["attention"].hide()
    docks.suit("flow")
    assert docks["attention"].isHidden(), "what was closed stays closed"
    docks.default_layout()
    assert docks["layers"].isHidden()
    assert not docks["attention"].isHidden()


def _drag(window: QMainWindow, start: QPoint, along: int) -> None:
    """Drag what lies at ``start`` by so many pixels to the right."""
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QTest.mousePress(window, left, none, start)
    for step in (along // 2, along):
        QTest.mouseMove(window, start + QPoint(step, 0))
        QApplication.processEvents()
    QTest.mouseRelease(window, left, none, start + QPoint(along, 0))


def test_extra_room_goes_to_the_centre_and_the_sides_keep_their_widths(
    borrowed_window: MainWindow, qtbot: QtBot
) -> None:
    window, docks = borrowed_window, borrowed_window.docks

    def widths() -> tuple[int, int]:
        return docks["setup"].width(), docks["meters"].width()

    def resize(width: int, height: int) -> None:
        window.resize(width, height)
        qtbot.waitUntil(lambda: window.width() == width)
        # Laid out in turns of their own.
        for _ in range(20):
            QApplication.processEvents()

    before = window.size()
    resize(1440, 900)
    docks.keep_sides()
    at_first = widths()
    assert at_first[0] <= 360
    for size in ((1920, 1050), (1024, 700), (960, 520), (1920, 1050)):
        resize(*size)
        assert (window.width(), window.height()) == size, "the window fits a small screen"
        assert widths() == at_first
        assert docks["meters"].geometry().right() < window.width(), "nothing is off the screen"
    separator = QPoint(docks["setup"].geometry().right() + 2, window.height() // 2)
    _drag(window, separator, 100)
    qtbot.waitUntil(lambda: docks._kept[docks["setup"]] == docks["setup"].width() == at_first[0] + 100)
    resize(1440, 900)
    assert widths() == (at_first[0] + 100, at_first[1]), "what the user drags stays"
    docks.default_layout()
    resize(before.width(), before.height())
    docks.keep_sides()


def test_a_panel_scrolls_where_it_has_less_room_than_it_needs(qtbot: QtBot) -> None:
    panel = QWidget()
    panel.setMinimumSize(900, 700)
    area = Shrinkable(panel)
    qtbot.addWidget(area)
    area.resize(400, 300)
    area.show()
    assert area.minimumSizeHint().width() < 400 and area.minimumSizeHint().height() < 300
    assert (panel.width(), panel.height()) == (900, 700)
    assert area.horizontalScrollBar().maximum() > 0 and area.verticalScrollBar().maximum() > 0
    area.resize(1000, 800)
    assert (panel.width(), panel.height()) == (1000, 800)
