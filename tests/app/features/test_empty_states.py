"""A view without content shows one sentence, and a button that fills it or says why it cannot; nothing is drawn."""

import itertools

from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from paretone_app.shell.window import MainWindow
from paretone_app.widgets.action import Action
from paretone_app.widgets.invitation import Invited
from tests.app.conftest import in_front

VIEWS = "strategy threshold attention transfer decoding demasking roofline views tradeoff studies takes training"
"""Panels that begin empty; Listen has an empty state for each of A and B."""
LOOKED_AT = ("takes",)


def test_an_empty_view_says_what_will_be_there_and_what_fills_it(shared_window: MainWindow) -> None:
    found = {name: shared_window.panels[name].findChildren(Invited) for name in VIEWS.split()}
    assert all(found.values()), "each has an empty state"
    for one in itertools.chain(*found.values()):
        assert one.is_empty and one.invitation.text() and one.empty.buttons
        for button in one.empty.buttons:
            assert button.accessibleName() or button.text()
            assert button.isEnabled() or len(button.toolTip()) > 10, "or it says why it cannot"


def test_take_a_is_made_where_it_will_appear(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    window = borrowed_window
    of_a, of_b = window.panels["listen"].empty
    takes = window.panels["takes"].pages
    assert of_a.isVisible() and of_b.isVisible() and takes.is_empty
    assert not of_b.buttons[0].isEnabled() and "calibrate" in of_b.buttons[0].toolTip().lower()
    of_a.buttons[0].setFocus()
    of_a.buttons[0].click()
    qtbot.waitUntil(lambda: window.state.comparison.take_a is not None)
    qtbot.waitUntil(lambda: not of_a.isVisible() and of_b.isVisible())
    assert not takes.is_empty and window.panels["listen"].isAncestorOf(window.focusWidget())


def test_the_focus_stays_where_the_view_was_filled(qtbot: QtBot) -> None:
    content, outside = QPushButton("Inside"), QPushButton("Outside")
    pages, window = Invited(content, "Nothing yet."), QWidget()
    button = pages.offer(Action("Fill it"))
    column = QVBoxLayout(window)
    column.addWidget(outside)
    column.addWidget(pages)
    in_front(window, qtbot)
    outside.setFocus()
    pages.show_content(True)
    assert outside.hasFocus(), "it is not taken from elsewhere"
    pages.show_content(False)
    button.setFocus()
    button.action.set_reason("It is being filled.")
    assert pages.invitation.hasFocus(), "what is pressed is disabled while it is done"
    pages.show_content(True)
    assert content.hasFocus()


def test_views_are_filled_by_their_buttons(shared_window: MainWindow, qtbot: QtBot) -> None:
    """The last to see that window."""
    window = shared_window
    strategy, threshold = window.panels["strategy"], window.panels["threshold"]
    assert threshold.pages.is_empty
    threshold.pages.empty.buttons[0].click()
    qtbot.waitUntil(lambda: bool(window.state.artefacts.in_use) and not window.jobs.busy)
    assert not strategy.pages.is_empty and not threshold.pages.is_empty
