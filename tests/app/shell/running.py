"""Jobs of a window."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS


def run(window: MainWindow, action, qtbot: QtBot) -> Outcome:
    qtbot.waitUntil(lambda: not window.jobs.busy, timeout=PATIENCE_MILLISECONDS)
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE_MILLISECONDS) as blocker:
        action.trigger()
    return blocker.args[1]
