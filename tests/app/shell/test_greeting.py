"""The first start speaks, once, and never over what the user wants."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.models import catalogue
from paretone_app.shell.greeting import WORDS, Greeting
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS, SMALL
from tests.app.shell.running import run

PARTS = SMALL
LOOKED_AT = ("takes",)


def fresh(folder: Path) -> QSettings:
    return QSettings(str(folder / "fresh.ini"), QSettings.Format.IniFormat)


def test_the_first_start_speaks_and_no_other_does(borrowed_window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window, settings = borrowed_window, fresh(tmp_path)
    greeting = Greeting(window, settings)
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
        window.built.emit()
    assert blocker.args[1] is Outcome.FINISHED
    take = window.state.comparison.take_a
    assert take is not None and (take.text, take.setting.techniques) == (catalogue.greeting(), ())
    assert window.state.selection.text == catalogue.greeting()
    window.built.emit()
    QApplication.processEvents()
    assert not window.jobs.busy, "once"
    greeting.deleteLater()
    assert not Greeting.is_first(settings)
    other = fresh(tmp_path / "other")
    other.setValue("geometry", b"")
    assert not Greeting.is_first(other), "a window was closed before"


def test_a_message_about_data_at_risk_is_not_covered(borrowed_window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = borrowed_window
    window.notices.ask("Nothing can be kept here.", ("Choose another folder…",), lambda _: None)
    greeting = Greeting(window, fresh(tmp_path))
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS):
        window.built.emit()
    banner, said = window.notices.banner, []
    while banner.isVisible():
        said.append(banner.text)
        banner.dismiss()
    assert said[-1] == "Nothing can be kept here." and WORDS not in said
    greeting.deleteLater()


def test_what_the_user_begins_comes_first(borrowed_window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window = borrowed_window
    for act in (
        lambda: run(window, window.action.baseline, qtbot),
        lambda: window.state.selection.set_text("Something else."),
    ):
        greeting = Greeting(window, fresh(tmp_path))
        act()
        window.built.emit()
        QApplication.processEvents()
        assert not window.jobs.busy and window.state.selection.text != catalogue.greeting()
        greeting.deleteLater()
