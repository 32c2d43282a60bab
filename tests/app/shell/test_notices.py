"""Messages lie over the window's lower right corner, until dismissed if they must be seen; the bar describes jobs."""

import itertools

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow, QProgressBar, QWidget
from pytestqt.qtbot import QtBot

from paretone.session.commands import ShutDown
from paretone.session.events import EngineStatus, JobFinished, Progress
from paretone_app.shell import banner as cards
from paretone_app.shell.banner import INFO, MOST, Banner, Message
from paretone_app.shell.bars import StatusLine
from paretone_app.shell.entries import EXPLORE, LISTEN
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Jobs, Kind
from tests.app.conftest import activated, on_screen
from tests.app.sharing import borrowed  # noqa: F401

LOOKED_AT = ("takes",)


def place_in(window: MainWindow, widget: QWidget) -> QRect:
    return QRect(widget.mapTo(window, QPoint()), widget.size())


def test_nothing_moves_when_messages_come_and_go_and_no_bar_is_covered(window: MainWindow) -> None:
    places = {place.name: dock.geometry() for place, dock in window.workspaces}
    window.notices.say("A sentence.")
    banner = window.notices.banner
    assert banner.isVisible()
    first = banner.height()
    bars = [window.header, window.rail, window.panels["player"], window.statusBar(), window.features["guide"].guide]

    def covered() -> list[QWidget]:
        return [one for one in bars if one.isVisible() and banner.geometry().intersects(place_in(window, one))]

    def is_in_the_corner() -> bool:
        place = banner.geometry()
        below = place_in(window, window.panels["player"]).top() - place.bottom()
        return window.width() - 20 < place.right() < window.width() and 25 < below < 50  # Buttons are below.

    assert covered() == [] and is_in_the_corner()
    window.notices.say(" ".join(["A long sentence."] * 60))
    assert banner.height() > 3 * first and covered() == [] and is_in_the_corner()
    window.notices.say("word " * 3000)
    assert banner.height() > 3 * first and covered() == [] and is_in_the_corner(), "the rest is scrolled to"
    assert {name: window.workspaces[name].geometry() for name in places} == places
    window.notices.say("")
    assert not banner.isVisible()


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768)])
def test_new_figures_are_not_covered(window: MainWindow, qtbot: QtBot, size: tuple[int, int]) -> None:
    banner, before = window.notices.banner, window.size()
    window.resize(*size)
    window.workspaces.switch(LISTEN)
    docks, meters = window.workspaces.shown, window.workspaces["meters"]
    for panel in ("meters", "takes"):
        window.workspaces.go_to(panel)
        for number in range(MOST):
            window.notices.say(f"Error {number}: " + "a sentence on what went wrong and what to do. " * 4, "error")
        qtbot.waitUntil(lambda: not banner.isHidden())
        assert window.rect().contains(banner.geometry()) and banner.width() > 200
        if size[0] > 1024 or panel == "meters":
            qtbot.waitUntil(lambda: docks.is_seen(meters))
            qtbot.waitUntil(lambda: not banner.geometry().intersects(place_in(window, meters)))
    # Below Meters again when there is nothing to keep clear of.
    window.workspaces.switch(EXPLORE)
    qtbot.waitUntil(lambda: window.width() - 20 < banner.geometry().right() < window.width())
    banner.clear()
    window.workspaces.switch(LISTEN)
    window.resize(before)
    window.workspaces.default_layout()


def test_escape_dismisses_what_was_said_but_a_question_waits(window: MainWindow, qtbot: QtBot) -> None:
    notices, banner = window.notices, window.notices.banner
    table = window.panels["takes"].table
    window.activateWindow()
    table.setFocus()
    said: list[str] = []
    notices.ask("Which one?", ("This", "That"), said.append)
    notices.say("It failed.", "error")
    for _ in range(2):
        qtbot.keyClick(table, Qt.Key.Key_Escape)
        assert banner.text == "Which one?"
    notices.say("Something else.")
    notices.say("")
    notices.say("Which one?", "error")
    assert banner.text == "Which one?", "a failed job that says the same leaves the answers there"
    qtbot.mouseClick(banner.answers[1], Qt.MouseButton.LeftButton)
    assert said == ["That"] and not banner.isVisible()


def test_a_few_are_shown_the_newest_at_the_corner_and_those_that_stay_come_back(window: MainWindow) -> None:
    notices, banner = window.notices, window.notices.banner
    for number in range(MOST + 2):
        notices.say(f"Sentence {number}.", "info")
    shown = [one.message.sentence for one in banner.cards]
    assert shown == [f"Sentence {number}." for number in range(2, MOST + 2)] and banner.text == shown[-1]
    places = [one.geometry() for one in banner.cards]
    assert all(one.bottom() < other.top() for one, other in itertools.pairwise(places))
    assert banner.rect().contains(places[0]) and places[-1].bottom() == banner.rect().bottom()
    notices.say("Sentence 3.", "info")
    assert [one.message.sentence for one in banner.cards].count("Sentence 3.") == 1, "the same is not said twice"
    assert banner.text == "Sentence 3."
    banner.cards[0].close_button.click()
    assert len(banner.cards) == MOST - 1 and banner.text == "Sentence 3."
    notices.banner.clear()
    for number in range(MOST + 1):
        notices.say(f"Error {number}.", "error")
    assert [one.message.sentence for one in banner.cards] == [f"Error {number}." for number in range(1, MOST + 1)]
    notices.say("Something else.", "info")
    assert banner.text == "Something else." and len(banner.cards) == MOST
    for _ in range(MOST):
        banner.dismiss()
    assert [one.message.sentence for one in banner.cards] == ["Error 0.", "Error 1."]


def test_what_puts_data_at_risk_stays_until_it_is_dismissed(window: MainWindow, qtbot: QtBot) -> None:
    notices, banner = window.notices, window.notices.banner
    notices.say("The disk is full: the take is not kept.", "warning", at_risk=True)
    notices.say("An error.", "error")
    notices.say("Choose a take first.")
    window.action.baseline.trigger()
    assert window.jobs.busy
    assert [one.message.sentence for one in banner.cards] == ["The disk is full: the take is not kept.", "An error."]
    notices.say("Something else.", "info")
    assert banner.text == "Something else."
    for _ in range(2):
        banner.dismiss()
    assert (banner.text, banner.cards[-1].message.level) == ("The disk is full: the take is not kept.", "warning")
    banner.dismiss()
    assert not banner.isVisible()


def test_messages_go_by_themselves(window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "LASTING", {"info": 0.1, "warning": 0.1})
    notices, banner = window.notices, window.notices.banner
    notices.look_back()
    notices.say("An error.", "error")
    notices.say("Read me.", "info")
    activated(window, qtbot)
    window.action.message.trigger()
    assert banner.isAncestorOf(QApplication.focusWidget())
    qtbot.wait(1500)
    assert banner.text == "Read me.", "while it has the focus it stays"
    window.panels["setup"].text.setFocus()
    qtbot.waitUntil(lambda: banner.text == "An error.")
    assert notices.missed == 1


def test_keys_reach_dismiss_and_leave_messages(window: MainWindow, qtbot: QtBot) -> None:
    activated(window, qtbot)
    text, banner = window.panels["setup"].text, window.notices.banner
    text.setFocus()
    for sentence in ("One.", "Two."):
        window.notices.say(sentence)
    assert text.hasFocus(), "they take no focus"
    QTest.keyClick(text, Qt.Key.Key_F6)
    assert QApplication.focusWidget() is banner.cards[-1].label
    assert banner.cards[-1].label.accessibleDescription() == "Two."
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert banner.text == "One." and QApplication.focusWidget() is banner.cards[-1].label
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert not banner.isVisible() and text.hasFocus()


def test_all_messages_can_be_read_again(window: MainWindow, qtbot: QtBot) -> None:
    log = window.features["log"]
    for sentence, level in (("First.", "info"), ("Second.", "warning"), ("Third.", "error")):
        window.notices.say(sentence, level)
    window.notices.say("")
    assert log.bell.text() == str(window.notices.missed) != "0"
    assert f"{window.notices.missed} messages went by themselves" in log.bell.accessibleName()
    log.bell.click()
    assert window.notices.missed == 0 and log.bell.text() == ""
    lines = log.messages.text.toPlainText().splitlines()
    assert [one.partition("  ")[2] for one in lines[:3]] == ["Error: Third.", "Warning: Second.", "Information: First."]
    window.notices.say("While it is open.", "info")
    assert "While it is open." in log.messages.text.toPlainText().splitlines()[0]
    log.messages.reject()
    qtbot.waitUntil(lambda: log.messages is None)


def test_no_line_of_a_long_sentence_is_cut(theme: Theme, qtbot: QtBot) -> None:
    theme.apply(Scheme.LIGHT)
    window = on_screen(QWidget(), qtbot, 1024, 700)
    banner = Banner(window)
    banner.place(QRect(10, 10, 1004, 680))
    for words in (12, 3, 40, 90):
        for choices in ((), ("This", "That")):
            banner.show_message(Message("words " * words + str(choices), INFO, choices))
            label = banner.cards[-1].label
            QApplication.processEvents()
            assert label.height() >= label.heightForWidth(label.width()) >= label.fontMetrics().height()
            whole = QRect(label.mapTo(banner.cards[-1], QPoint()), label.size())
            assert banner.cards[-1].contentsRect().contains(whole)
            for one in banner.cards[-1].findChildren(QWidget):
                if one.isVisible() and not isinstance(one, QLabel):
                    assert banner.cards[-1].rect().contains(QRect(one.mapTo(banner.cards[-1], QPoint()), one.size()))
            banner.clear()


def test_the_status_bar_says_what_a_job_is_at_until_there_is_progress(qtbot: QtBot) -> None:
    window, jobs = on_screen(QMainWindow(), qtbot), Jobs(lambda command: None)
    status = StatusLine(window, jobs)
    job = jobs.start(Kind.ACCELERATED, ShutDown)
    assert status.text == "Synthesising with techniques…"
    status.follow(EngineStatus(job.number, "Compiling …"))
    assert status.text == "Synthesising with techniques: Compiling …"
    status.show_progress(Progress(job.number, 0, 16, 12.0, ""))
    assert status.text == "Synthesising with techniques…", "it is no longer compiling"
    status.show_progress(Progress(job.number, 1, 16, 11.0, "Step 1 of 16"))
    status.show_progress(Progress(job.number, 2, 16, 10.0, ""))
    assert status.text == "Step 1 of 16"
    status.show_progress(Progress(job.number, 3 << 30, 4 << 30, None, "Step 1 of 16"))
    assert window.findChild(QProgressBar).text() == "75 %", "of more bytes than 32 bits count"
    jobs.handle(JobFinished(job.number))
    assert status.text == "Synthesising with techniques: finished"
    # What belongs to no running job is passed over.
    job = jobs.start(Kind.BASELINE, ShutDown)
    status.follow(EngineStatus(job.number + 1, "Compiling …"))
    status.follow(EngineStatus(0, "Loading PyTorch…"))
    assert status.text == "Synthesising the baseline…"
    jobs.handle(JobFinished(job.number))
    status.follow(EngineStatus(job.number, "Compiling …"))
    assert status.text == "Synthesising the baseline: finished"
