"""Tab goes through the window as the eye does."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from paretone_app.shell.window import MainWindow


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
