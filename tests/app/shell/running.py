"""Jobs of a window."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome


def run(window: MainWindow, action, qtbot: QtBot) -> Outcome:
    qtbot.waitUntil(lambda: not window.jobs.busy)
    with qtbot.waitSignal(window.jobs.ended) as blocker:
        action.trigger()
    return blocker.args[1]
