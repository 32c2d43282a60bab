"""The banner is laid over the window; what the user must see stays until it is dismissed."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.shell.banner import Banner
from app.shell.theme import Scheme, Theme
from app.shell.window import MainWindow
from engine.session.events import Caution


@pytest.fixture(scope="module")
def looked_at() -> tuple[str, ...]:
    """After a take, Setup knows what others cost."""
    return ("takes",)


def test_nothing_moves_when_the_banner_comes_and_goes(borrowed_window: MainWindow) -> None:
    window = borrowed_window
    places = {name: dock.geometry() for name, dock in ((place.name, dock) for place, dock in window.workspaces)}
    window.notices.say("A sentence.")
    banner = window.notices.banner
    assert banner.isVisible()
    assert banner.geometry().left() >= 0 and banner.geometry().right() < window.width()
    for button in (window.features["guide"].guide.button(0), window.header.cancel):
        assert not banner.geometry().intersects(QRect(button.mapTo(window, QPoint()), button.size()))
    assert {name: window.workspaces[name].geometry() for name in places} == places
    window.notices.say(" ".join(["A long sentence."] * 60))
    assert banner.height() > 2 * banner.line_height
    assert {name: window.workspaces[name].geometry() for name in places} == places
    window.notices.say("")
    assert not banner.isVisible()


def test_what_puts_data_at_risk_stays_until_it_is_dismissed(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    notices, banner = borrowed_window.notices, borrowed_window.notices.banner
    notices.say("The disk is full: the take is not kept.", "error", at_risk=True)
    borrowed_window.action.baseline.trigger()
    assert borrowed_window.jobs.busy
    assert banner.text == "The disk is full: the take is not kept.", "another job does not hide it"
    notices.say("Something else.", "info")
    assert banner.text == "Something else."
    banner.dismiss()
    assert (banner.text, banner.level) == ("The disk is full: the take is not kept.", "error"), "it comes back"
    banner.dismiss()
    assert not banner.isVisible()


def test_a_question_waits_for_its_answer(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    notices, banner = borrowed_window.notices, borrowed_window.notices.banner
    said: list[str] = []
    notices.ask("Which one?", ("This", "That"), said.append)
    notices.say("Something else.")
    notices.say("")
    assert banner.text == "Which one?"
    qtbot.mouseClick(banner.answers[1], Qt.MouseButton.LeftButton)
    assert said == ["That"]
    assert not banner.isVisible()


@pytest.mark.parametrize("scheme", list(Scheme))
def test_no_line_of_a_long_sentence_is_cut(theme: Theme, scheme: Scheme, qtbot: QtBot) -> None:
    theme.apply(scheme)
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(1024, 700)
    window.show()
    banner = Banner(window)
    banner.setFixedWidth(934)
    for lines in (2, 1, 3, 2):  # The first comes while the banner is hidden, the others while it is there.
        banner.say("words " * round(lines * 0.9 * 880 / banner.fontMetrics().horizontalAdvance("words ")))
        label = banner.findChild(QLabel)
        assert label.height() >= label.heightForWidth(label.width()) >= lines * banner.fontMetrics().height()
        assert banner.contentsRect().contains(label.geometry())
    banner.ask("words " * 200, ("This", "That"))
    assert label.height() >= label.heightForWidth(label.width())


def test_what_is_to_be_known_of_a_voice_is_shown_once(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    """Every take in that voice says it."""
    window, doubt = borrowed_window, "me.wav does not seem to say its transcript."
    for number, shown in ((1, doubt), (2, "")):
        window.notices.say("")
        with qtbot.waitSignal(window.notices.noted) as noted:
            window.bridge.post(Caution(number, doubt))
        assert noted.args[1] == doubt
        assert window.notices.banner.text == shown or not window.notices.banner.isVisible()
        assert window.notices.banner.isVisible() == bool(shown)
