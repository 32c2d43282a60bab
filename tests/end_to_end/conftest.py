"""The real window with its engine and the data folder of the test, and the ends of its jobs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from paretone.session.engine_thread import EngineThread
from paretone_app.shell.theme import Scheme, Theme
from paretone_app.shell.window import MainWindow
from tests.app.conftest import close

Outcome = Callable[[Callable[[], object]], tuple[str, str]]

PATIENCE_MILLISECONDS = 240_000
"""When a test gives up; never what it measures."""


@pytest.fixture
def window(qapp: QApplication, theme: Theme, qtbot: QtBot, tmp_path: Path) -> Iterator[MainWindow]:
    qapp.setQuitOnLastWindowClosed(False)
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(theme, settings, tmp_path / "data", EngineThread)
    window.theme.apply(Scheme.LIGHT)
    window.resize(1440, 900)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(lambda: window.is_built and window.state.selection.ready, timeout=PATIENCE_MILLISECONDS)
    yield window
    close(window, qtbot)


@pytest.fixture
def outcome_of(window: MainWindow, qtbot: QtBot) -> Outcome:
    """Presses something, and waits for the job that this begins: its outcome, and the sentence if it failed."""

    def outcome_of(press: Callable[[], object]) -> tuple[str, str]:
        # The model is ready a moment before its loading has ended, and that end must not be taken for the new job's.
        qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
        with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
            press()
        return blocker.args[1].value, blocker.args[2]

    return outcome_of
