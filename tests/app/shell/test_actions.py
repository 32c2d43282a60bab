"""An action does what is bound to it, and tells what the user can do when it cannot."""

from __future__ import annotations

from PySide6.QtGui import QUndoStack
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone_app.shell.actions import Actions


def test_what_is_being_typed_is_taken_over_before_an_action_runs(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    actions = Actions(window, QUndoStack(window))
    order: list[str] = []
    actions.about_to_run.connect(lambda: order.append("take over"))
    actions.bind(actions.baseline, lambda: order.append("run"))
    actions.baseline.trigger()
    assert order == ["take over", "run"]


def test_a_problem_of_an_action_is_told(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    actions = Actions(window, QUndoStack(window))

    def fail() -> None:
        raise PlainError("Type a sentence first.")

    actions.bind(actions.baseline, fail)
    with qtbot.waitSignal(actions.failed) as blocker:
        actions.baseline.trigger()
    assert blocker.args == ["Type a sentence first."]
