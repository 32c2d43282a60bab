"""Alt keys go to visible panels, not to those under other tabs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QDockWidget,
    QLabel,
    QLineEdit,
    QMainWindow,
    QMenu,
    QMenuBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from paretone_app.shell.menus import VisibleMnemonics
from paretone_app.shell.window import MainWindow
from tests.app.conftest import activated, in_front

KEY, ALT = Qt.Key, Qt.KeyboardModifier.AltModifier


class Host:
    """A window with two tabs, each of which has Alt+G and a field that Alt+N goes to."""

    def __init__(self) -> None:
        self.window = QMainWindow()
        self.clicked: list[str] = []
        self.fields: dict[str, QLineEdit] = {}
        self.docks = {name: self._dock(name) for name in ("one", "two")}
        self.window.tabifyDockWidget(*self.docks.values())
        self.window.setCentralWidget(QLineEdit())
        VisibleMnemonics(self.window)

    def _dock(self, name: str) -> QDockWidget:
        dock, panel, field = QDockWidget(name, self.window), QWidget(), QLineEdit()
        button, label = QPushButton(f"&Go {name}"), QLabel("&Name")
        button.clicked.connect(lambda: self.clicked.append(name))
        label.setBuddy(field)
        column = QVBoxLayout(panel)
        for one in (button, label, field):
            column.addWidget(one)
        dock.setWidget(panel)
        self.window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, dock)
        self.fields[name] = field
        return dock

    def press(self, key: Qt.Key) -> None:
        """As people do: Alt, then the letter, then neither."""
        QTest.keyPress(self.window.focusWidget(), KEY.Key_Alt, ALT)
        QTest.keyClick(self.window.focusWidget(), key, ALT)
        QTest.keyRelease(self.window.focusWidget(), KEY.Key_Alt)


@pytest.fixture
def host(qtbot: QtBot) -> Host:
    made = Host()
    in_front(made.window, qtbot, 500, 300)
    made.window.centralWidget().setFocus()
    return made


@pytest.mark.parametrize("front", ["one", "two"])
def test_alt_keys_go_to_the_panel_in_front(host: Host, qtbot: QtBot, front: str) -> None:
    back = {"one": "two", "two": "one"}[front]
    host.docks[front].raise_()
    qtbot.waitUntil(lambda: host.docks[back].visibleRegion().isEmpty())
    for number in (1, 2):
        host.press(KEY.Key_G)
        qtbot.waitUntil(lambda number=number: host.clicked == [front] * number)
    host.press(KEY.Key_N)
    assert host.window.focusWidget() is host.fields[front]
    host.docks[back].raise_()
    qtbot.waitUntil(lambda: host.docks[front].visibleRegion().isEmpty())
    host.press(KEY.Key_G)
    qtbot.waitUntil(lambda: host.clicked == [front, front, back])


def test_the_panel_with_the_focus_comes_first_and_of_others_the_first(host: Host, qtbot: QtBot) -> None:
    host.window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, host.docks["two"])
    qtbot.waitUntil(lambda: not any(one.visibleRegion().isEmpty() for one in host.docks.values()))
    host.press(KEY.Key_G)
    qtbot.waitUntil(lambda: host.clicked == ["one"])
    clicked = ["one"]
    for name in ("two", "one"):
        host.fields[name].setFocus()
        host.press(KEY.Key_G)
        clicked.append(name)
        qtbot.waitUntil(lambda: host.clicked == clicked)


@pytest.mark.timeout(900)
def test_no_letter_is_reached_by_two_at_the_same_time(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    """Of what the real window shows, whichever panels are in front and have the focus; its menus keep theirs."""
    window = borrowed_window
    window.resize(1500, 1000)
    activated(window, qtbot)
    assert clashes_of_menus(window.menuBar()) == {}
    bar = {letter(one.text()) for one in window.menuBar().actions()}
    strange = {one.text() for one in labelled(window) if letter(one.text()) in bar}
    assert strange == set(), "have a letter of the menu bar"
    within, between = {}, {}
    there = [(one, place) for one in window.workspaces.there for place in window.workspaces.of(one).places]
    for workspace, place in there:
        name, docks = place.name, window.workspaces.of(workspace)
        window.workspaces.switch(workspace)
        for other in docks.places:
            # Guests, too: whatever the user may have shown.
            if other.region is not place.region or other.home is not workspace:
                docks.show(other.name)
        docks.show(name)
        window.workspaces.go_to(name)
        qtbot.wait(20)
        others = docks.host.tabifiedDockWidgets(docks[name])
        qtbot.waitUntil(lambda others=others: all(one.visibleRegion().isEmpty() for one in others))
        panel = window.panels[name]
        within[name] = twice(one for one in labelled(window) if panel.isAncestorOf(one) and one.isVisible())
        QTest.keyPress(window.focusWidget(), KEY.Key_Alt, ALT)
        between[name] = twice(one for one in labelled(window) if is_reached(one))
        QTest.keyRelease(window.focusWidget(), KEY.Key_Alt)
    assert {name: found for name, found in within.items() if found} == {}
    assert {name: found for name, found in between.items() if found} == {}


def labelled(window: MainWindow) -> list[QAbstractButton | QLabel]:
    """Buttons and labels with an Alt key in their text, visible or not."""
    labels = [one for one in window.findChildren(QLabel) if one.buddy() is not None]
    return [one for one in (*window.findChildren(QAbstractButton), *labels) if letter(one.text())]


def is_reached(one: QAbstractButton | QLabel) -> bool:
    return one.isVisible() and (isinstance(one, QLabel) or (one.isEnabled() and not one.shortcut().isEmpty()))


def letter(text: str) -> str:
    """The Alt key in ``text``; ``""`` where it has none."""
    return QKeySequence.mnemonic(text).toString()


def twice(widgets: Iterable[QAbstractButton | QLabel | QAction]) -> dict[str, list[str]]:
    """The texts that share an Alt key, by that."""
    found: dict[str, list[str]] = {}
    for one in widgets:
        found.setdefault(letter(one.text()), []).append(one.text())
    return {key: texts for key, texts in found.items() if len(texts) > 1}


def clashes_of_menus(menu: QMenuBar | QMenu) -> dict[str, list[str]]:
    """The entries of one menu that share a letter, below ``menu``."""
    found = twice(one for one in menu.actions() if letter(one.text()))
    for action in menu.actions():
        if action.menu() is not None:
            found |= clashes_of_menus(action.menu())
    return found


def _passed(window: MainWindow) -> list[QWidget]:
    """What Tab reaches from the rail on, in order."""
    found = []
    first = one = next(iter(window.rail.buttons.values()))
    while not found or one is not first:
        if one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isVisible() and one.isEnabled():
            found.append(one)
        one = one.nextInFocusChain()
    return found


def test_tab_goes_from_the_rail_through_the_workspace_to_the_player(shared_window: MainWindow) -> None:
    window = shared_window
    parts = {
        "rail": window.rail,
        "steps": window.features["guide"].guide,
        "setup": window.panels["setup"],
        "listen": window.panels["listen"],
        "meters": window.panels["meters"],
        "takes": window.panels["takes"],
        "player": window.panels["player"],
    }
    passed = [name for one in _passed(window) for name, part in parts.items() if one is part or part.isAncestorOf(one)]
    assert list(dict.fromkeys(passed)) == list(parts), "each part once, in the order of reading"
    assert passed == sorted(passed, key=list(parts).index), "none is left and entered again"
