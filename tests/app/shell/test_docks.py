"""Panels are where their places say, one entry each."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLineEdit, QMainWindow
from pytestqt.qtbot import QtBot

from app.features.registry import FEATURES
from app.shell.docks import Docks
from app.shell.places import Place, Region

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
