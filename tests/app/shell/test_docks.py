"""Panels of a workspace are where their places say, one entry each."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMainWindow, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from paretone_app.features.registry import FEATURES
from paretone_app.shell.docks import Docks
from paretone_app.shell.entries import DOCKED, INSPECT, LISTEN, Place, Region, Workspace
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.widgets.layouts import Shrinkable
from tests.app.conftest import on_screen

PLACES = tuple(place for feature in FEATURES for place in feature.places if place.region in DOCKED)


def places_of(workspace: Workspace) -> tuple[Place, ...]:
    return tuple(one for one in PLACES if workspace in one.workspaces)


@pytest.fixture
def host(qtbot: QtBot) -> QMainWindow:
    return on_screen(QMainWindow(), qtbot, 1440, 900)


def laid_out(host: QMainWindow, workspace: Workspace) -> Docks:
    docks = Docks(host, workspace, places_of(workspace))
    docks.default_layout()
    return docks


def test_places_of_a_region_are_tabs_with_the_first_in_front(host: QMainWindow, qtbot: QtBot) -> None:
    docks = laid_out(host, LISTEN)
    first = {}
    for place, dock in docks:
        first.setdefault(place.region, dock)
        tabs = set(host.tabifiedDockWidgets(dock)) | {dock}
        assert tabs == {docks[one.name] for one in docks.places if one.region is place.region}
    qtbot.waitUntil(lambda: not any(dock.visibleRegion().isEmpty() for dock in first.values()))

    def in_their_places() -> None:
        centre, below = first[Region.CENTRE].geometry(), first[Region.BELOW].geometry()
        assert first[Region.LEFT].x() < centre.x() == below.x() < first[Region.RIGHT].x()
        assert centre.bottom() < below.top() and centre.height() > below.height()

    qtbot.waitUntil(in_their_places)


def test_what_is_at_the_right_goes_below_while_the_workspace_is_narrow(host: QMainWindow, qtbot: QtBot) -> None:
    docks = laid_out(host, LISTEN)
    qtbot.waitUntil(lambda: not docks["meters"].visibleRegion().isEmpty())
    docks["log"].hide()

    def below() -> bool:
        return docks["meters"] in host.tabifiedDockWidgets(docks["takes"])

    places = []
    for again in range(2):
        places.append(docks["meters"].geometry())
        host.resize(950, 600)
        qtbot.waitUntil(below)
        qtbot.waitUntil(lambda: not docks["takes"].visibleRegion().isEmpty())
        assert docks["log"].isHidden() and not docks["meters"].isHidden(), again
        docks.show("meters")
        qtbot.waitUntil(lambda: not docks["meters"].visibleRegion().isEmpty())
        assert docks["meters"].geometry().top() > docks["listen"].geometry().bottom()
        assert docks["meters"].width() == docks["listen"].width()
        host.resize(1440, 900)
        qtbot.waitUntil(lambda: not below())
        qtbot.waitUntil(lambda: abs(docks["meters"].width() - places[0].width()) < 5)
        assert docks["meters"].geometry().left() > docks["listen"].geometry().right()
        assert docks["log"].isHidden() and not docks["takes"].visibleRegion().isEmpty()
    # What the user moved stays where it is.
    docks["meters"].setFloating(True)
    host.resize(950, 600)
    QTest.qWait(50)
    assert docks["meters"].isFloating()


def test_a_side_that_grew_is_not_covered_by_the_centre(host: QMainWindow, qtbot: QtBot) -> None:
    docks = laid_out(host, LISTEN)
    content = QWidget()
    docks.put("setup", content)
    qtbot.waitUntil(lambda: not docks["listen"].visibleRegion().isEmpty())
    docks.keep_sides()
    before = docks["setup"].width()
    content.setMinimumWidth(before + 90)
    qtbot.waitUntil(lambda: docks["setup"].width() >= before + 90)
    host.layout().activate()
    docks.keep_sides()
    QTest.qWait(50)
    setup, listen = docks["setup"].geometry(), docks["listen"].geometry()
    assert setup.right() < listen.left(), "the centre begins where the side ends"


def test_a_gallery_has_no_tabs_until_panels_may_be_moved(host: QMainWindow, qtbot: QtBot, theme: Theme) -> None:
    theme.apply(Scheme.LIGHT)
    docks = laid_out(host, INSPECT)

    def tabs() -> int:
        return max(one.sizeHint().height() for one in host.findChildren(QTabBar) if one.count())

    qtbot.waitUntil(lambda: tabs() == 0)
    qtbot.waitUntil(lambda: not any(one.focusPolicy() & Qt.FocusPolicy.TabFocus for one in host.findChildren(QTabBar)))
    docks.unlock(True)
    qtbot.waitUntil(lambda: tabs() > 10)
    docks.unlock(False)
    qtbot.waitUntil(lambda: tabs() == 0)


def test_a_layout_saved_with_other_panels_is_passed_over(host: QMainWindow) -> None:
    docks = laid_out(host, LISTEN)
    docks["log"].hide()
    own = docks.saved()
    docks.default_layout()
    docks.restore(own)
    assert docks["log"].isHidden()
    other = QMainWindow()
    another = Place("another", "Another", Region.CENTRE, workspaces=(LISTEN,))
    more = Docks(other, LISTEN, (*places_of(LISTEN), another))
    more.default_layout()
    more["log"].hide()
    docks.restore(more.saved())
    assert not docks["log"].isHidden()
    docks.restore(None)
    assert not docks["log"].isHidden()


def test_one_panel_alone_leaves_the_saved_layout_as_it_was(host: QMainWindow, qtbot: QtBot) -> None:
    docks = laid_out(host, INSPECT)
    docks["views"].hide()
    docks.bring_forward("layers")
    shown = [place.name for place, dock in docks if not dock.isHidden()]
    before = docks.saved()
    docks.show_only("roofline")
    assert docks.alone
    assert [place.name for place, dock in docks if not dock.isHidden()] == ["roofline"]
    assert docks.saved() == before, "what is kept between sessions is the whole layout"
    docks.show_as_before()
    assert [place.name for place, dock in docks if not dock.isHidden()] == shown
    qtbot.waitUntil(lambda: not docks["layers"].visibleRegion().isEmpty())
    docks["attention"].hide()
    docks.show_as_before()
    assert docks["attention"].isHidden(), "nothing to bring back"


def test_panels_that_a_family_has_nothing_for_do_not_stand_in_the_way(host: QMainWindow, qtbot: QtBot) -> None:
    docks = laid_out(host, INSPECT)
    qtbot.waitUntil(lambda: not docks["strategy"].visibleRegion().isEmpty())
    docks.suit("language")
    assert docks["strategy"].isHidden()
    assert not docks["views"].isHidden(), "what concerns all stays"
    qtbot.waitUntil(lambda: not docks["decoding"].visibleRegion().isEmpty())
    assert docks.front == "decoding"
    docks.show("strategy")
    assert not docks["strategy"].isHidden(), "it is there for whoever asks for it"
    docks.suit("language", "mel-flow", "flow")
    assert docks.front == "strategy" and not docks["decoding"].isHidden(), "a language model with a flow has both"
    docks.suit("language", "mel-flow")
    assert docks["strategy"].isHidden() and not docks["grids"].isHidden()
    docks.suit("flow")
    assert docks["decoding"].isHidden()
    docks["attention"].hide()
    docks.suit("flow")
    assert docks["attention"].isHidden(), "what was closed stays closed"
    docks.default_layout()
    assert docks["layers"].isHidden()
    assert not docks["attention"].isHidden()


def test_a_panel_scrolls_where_it_has_less_room_than_it_needs(qtbot: QtBot) -> None:
    panel = QWidget()
    panel.setMinimumSize(900, 700)
    area = on_screen(Shrinkable(panel), qtbot, 400, 300)
    assert area.minimumSizeHint().width() < 400 and area.minimumSizeHint().height() < 300
    assert (panel.width(), panel.height()) == (900, 700)
    assert area.horizontalScrollBar().maximum() > 0 and area.verticalScrollBar().maximum() > 0
    area.resize(1000, 800)
    assert (panel.width(), panel.height()) == (1000, 800)
