"""An action does what is bound to it, and tells what the user can do when it cannot."""

from __future__ import annotations

from PySide6.QtGui import QUndoStack
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone_app.shell.actions import Actions
from paretone_app.widgets.action import ActionButton, IconButton


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


def test_the_first_reason_against_an_action_is_its_own(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    actions = Actions(window, QUndoStack(window))
    busy, done = ["Wait for the running job."], []
    action = actions.add("Com&pute", lambda: done.append(1), "Run the model", lambda: next(iter(busy), ""))
    action.explain(lambda: "Choose a view first." if not done else "")
    actions.refresh()
    assert (action.isEnabled(), action.reason) == (False, "Wait for the running job.")
    busy.clear()
    actions.refresh()
    assert action.reason == "Choose a view first."
    done.append(0)
    actions.refresh()
    assert action.isEnabled() and action.reason == "" and action.toolTip() == "Run the model"
    action.trigger()
    assert done == [0, 1]


def test_buttons_show_their_action(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    actions = Actions(window, QUndoStack(window))
    local, declared = actions.add("Com&pute", lambda: None, "Run the model"), actions.baseline
    buttons = [ActionButton(local), ActionButton(declared), IconButton(declared), ActionButton(local, "")]
    for one in buttons:
        qtbot.addWidget(one)
    assert [one.text() for one in buttons] == ["Com&pute", "Synthesise baseline", "", ""]
    assert [one.accessibleName() for one in buttons] == [
        "Compute",
        "Synthesise baseline",
        "Synthesise baseline",
        "Compute",
    ]
    assert buttons[1].toolTip() == "Speak the text without any technique (Ctrl+B)"
    for action in (local, declared):
        action.set_reason("The model is not loaded yet.")
    assert not any(one.isEnabled() for one in buttons)
    assert {one.toolTip() for one in buttons} == {"The model is not loaded yet."}
    local.set_tip("Run the loaded model")
    assert local.reason == "The model is not loaded yet."
    local.set_reason("")
    assert buttons[0].isEnabled() and buttons[0].toolTip() == "Run the loaded model"
