"""The tour in the real window: eight stops whose things are done with the real controls, by hand or for the user."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from paretone_app.features.feature import Feature, tour_stops
from paretone_app.features.presenter import Part
from paretone_app.features.registry import FEATURES
from paretone_app.features.tour import Course, TourPresenter, placed
from paretone_app.shell.entries import EXPLORE, INSPECT, LISTEN, TEST, TourStop
from paretone_app.shell.window import MainWindow
from tests.app.conftest import SMALL, activated

ORDER = ["hear", "threshold", "difference", "skipped", "front", "blind", "export", "onward"]
PARTS = f"{SMALL} strategy threshold lab studies tradeoff export guide tour"


def begin(window: MainWindow, qtbot: QtBot) -> TourPresenter:
    activated(window, qtbot)
    window.action["tour"].trigger()
    return window.features.find(TourPresenter)


def wait_until_done(tour: TourPresenter, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: tour.course.part is None)
    qtbot.waitUntil(lambda: tour.card.next_button.property("look") == "primary")


def framed(tour: TourPresenter, control: QWidget) -> bool:
    place = QRect(control.mapTo(tour.card.window(), QPoint()), control.size())
    return tour.frame.isVisible() and tour.frame.geometry().adjusted(5, 5, -5, -5) == place


def test_stops_are_declared_by_their_features_and_come_in_order() -> None:
    found = tour_stops(FEATURES)
    assert [one.name for one in found] == ORDER
    assert [name for one, name in found.items()][1:4] == ["threshold", "listen", "strategy"]
    extra = Feature("mine", "nowhere:Presenter", stops=(TourStop("mine", "Mine", "Text.", after="blind"),))
    assert [one.name for one in tour_stops((extra, *FEATURES))][6] == "mine", "also if it is declared earlier"
    circle = [Feature(one, "nowhere:Presenter", stops=(TourStop(one, "", "", after=two),)) for one, two in ("ab", "ba")]
    with pytest.raises(ValueError, match="in a circle"):
        tour_stops(circle)


def test_what_was_done_stays_done_and_parts_follow_each_other() -> None:
    facts = {"first": False, "second": False}
    parts = [Part(one, lambda: None, lambda one=one: facts[one], lambda: None) for one in facts]
    course = Course([TourStop("a", "A", ""), TourStop("b", "B", "")], lambda stop: parts if stop.name == "a" else [])
    assert course.part is parts[0] and not course.look()
    facts["second"] = True
    assert course.part is parts[0], "the second alone is not enough"
    facts["first"] = True
    assert course.look() and course.part is None
    facts.update(first=False, second=False)
    course.go(1)
    assert course.stop.name == "b" and course.part is None and course.is_last
    course.go(-1)
    assert course.part is None and course.last_part is parts[1]


def test_the_card_keeps_off_what_it_speaks_of() -> None:
    room, card = QRect(0, 0, 1000, 700), QSize(300, 200)
    small = (10, 10, 80, 30), (900, 600, 90, 90), (450, 300, 100, 100)
    for target in (QRect(*one) for one in (*small, (0, 0, 1000, 400), (0, 0, 500, 700))):
        place = QRect(placed(card, target, room), card)
        assert room.contains(place) and not place.intersects(target)
    step, bar = QRect(100, 40, 80, 24), QRect(90, 36, 900, 60)
    assert not QRect(placed(card, step, room, bar), card).intersects(bar), "nor does it cover words of its bar"
    assert room.contains(QRect(placed(card, room, room), card))


def test_every_stop_does_the_real_thing(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    tour = begin(window, qtbot)
    card, state, visited = tour.card, window.state, []

    def go_on() -> None:
        visited.append(tour.course.stop.name)
        assert card.isVisible() and card.accessibleName().startswith(f"Tour, stop {len(visited)} of 8")
        qtbot.mouseClick(card.next_button, Qt.MouseButton.LeftButton)

    assert card.next_button.text() == "Skip" and card.help_button.hasFocus()
    assert framed(tour, window.features["guide"].guide.buttons[0])
    window.action.baseline.trigger()
    wait_until_done(tour, qtbot)
    assert state.comparison.take_a is not None and card.next_button.text() == "Next"
    assert card.next_button.hasFocus(), "the focus was in the card, whose other button is gone"
    go_on()

    panel = window.panels["threshold"]
    qtbot.waitUntil(lambda: framed(tour, panel.pages.empty.buttons[0]))
    before = panel.threshold
    qtbot.mouseClick(card.help_button, Qt.MouseButton.LeftButton)
    wait_until_done(tour, qtbot)
    assert state.artefacts.in_use and panel.threshold > before, "calibrated, then δ was moved"
    qtbot.waitUntil(lambda: framed(tour, panel.histogram))
    assert window.workspaces.current is INSPECT
    go_on()

    qtbot.mouseClick(card.help_button, Qt.MouseButton.LeftButton)
    wait_until_done(tour, qtbot)
    assert state.comparison.take_b is not None and window.features["listen"].step_done("compare")
    assert window.workspaces.current is LISTEN
    go_on()

    grid = window.panels["strategy"].grid
    assert not grid.visibleRegion().isEmpty() and tour.course.part is not None
    table, cell = window.features["strategy"].state.table, grid.cursor_cell
    assert card.help_button.hasFocus()
    QTest.keyClick(card.help_button, Qt.Key.Key_Return)
    assert grid.cursor_cell != cell and card.isAncestorOf(QApplication.focusWidget())
    wait_until_done(tour, qtbot)
    assert card.next_button.hasFocus(), "Enter is for the tour, and edits nothing"
    assert window.features["strategy"].state.table is table and not table.by_hand
    go_on()

    assert window.workspaces.current is EXPLORE
    qtbot.mouseClick(card.help_button, Qt.MouseButton.LeftButton)
    wait_until_done(tour, qtbot)
    assert window.panels["tradeoff"].plot.current is not None and window.features["studies"].summary is not None
    go_on()

    assert window.workspaces.current is TEST
    assert not card.help_button.isEnabled() and "audio" in card.hint.text(), "there is no sound here"
    assert card.next_button.text() == "Skip"
    go_on()

    window.features["export"].write(tmp_path / "profile.json")
    wait_until_done(tour, qtbot)
    go_on()
    assert card.next_button.text() == "Finish"
    go_on()
    assert visited == ORDER and tour.course is None and not card.isVisible() and not tour.frame.isVisible()


def test_escape_ends_it_at_any_stop_and_the_focus_returns(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    window = borrowed_window
    text = window.panels["setup"].text
    for number in (0, 2, 7):
        window.workspaces.switch(LISTEN)
        activated(window, qtbot)
        text.setFocus()
        tour = begin(window, qtbot)
        for _ in range(number):
            tour.card.next_button.setFocus()
            QTest.keyClick(tour.card.next_button, Qt.Key.Key_Return)
        assert tour.course.number == number + 1 and tour.card.isAncestorOf(QApplication.focusWidget())
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
        assert tour.course is None and not tour.card.isVisible()
        focus = QApplication.focusWidget()
        assert focus is not None and not tour.card.isAncestorOf(focus)
        if not number:
            assert focus is text


def test_it_moves_nothing_and_is_reached_by_keys(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    window = borrowed_window
    window.workspaces.switch(LISTEN)
    before = {name: panel.geometry() for name, panel in window.panels.items() if panel.isVisible()}
    tour = begin(window, qtbot)
    assert {name: panel.geometry() for name, panel in window.panels.items() if panel.isVisible()} == before
    window.panels["setup"].text.setFocus()
    for _ in range(10):
        window.action.next_region.trigger()
        if tour.card.isAncestorOf(QApplication.focusWidget()):
            break
    assert tour.card.isAncestorOf(QApplication.focusWidget()), "F6 comes by"
    focus = QApplication.focusWidget()
    assert tour.card.said == focus.accessibleDescription(), "a screen reader says it with the button"
    QTest.keyClick(focus, Qt.Key.Key_Escape)
    window.state.selection.model_id = "lm-mini"
    tour = begin(window, qtbot)
    assert [one.name for one in tour.course.stops] == [one for one in ORDER if one not in ("threshold", "skipped")]
    tour.end()
    window.state.selection.model_id = "f5-mini"
