"""Actions over an undo stack: enabled, named and ended with their owner."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import shiboken6
from PySide6.QtCore import QObject
from PySide6.QtGui import QUndoCommand, QUndoStack

from paretone_app.shell.actions import redo_action, undo_action
from paretone_app.state.app_state import UNDO_LIMIT, AppState
from paretone_app.state.editing import Edit
from paretone_app.state.jobs import Jobs


def test_actions_follow_their_stack(qtbot) -> None:
    owner, stack = QObject(), QUndoStack()
    undo, redo = undo_action(stack, "Undo", owner), redo_action(stack, "Redo", owner)
    assert (undo.isEnabled(), redo.isEnabled(), undo.text(), redo.text()) == (False, False, "Undo", "Redo")

    stack.push(QUndoCommand("threshold"))
    assert (undo.isEnabled(), undo.text()) == (True, "Undo: threshold")

    undo.trigger()
    assert stack.index() == 0
    assert (undo.isEnabled(), redo.isEnabled(), redo.text()) == (False, True, "Redo: threshold")

    redo.trigger()
    assert stack.index() == 1


def test_actions_made_late_name_what_is_there(qtbot) -> None:
    owner, stack = QObject(), QUndoStack()
    stack.push(QUndoCommand("threshold"))

    assert undo_action(stack, "Undo", owner).text() == "Undo: threshold"


def test_a_stack_outlives_its_actions(qtbot) -> None:
    """When a window ends, its actions may end before the stack does, and the stack tells of its emptying still."""
    owner, stack = QObject(), QUndoStack()
    undo_action(stack, "Undo", owner)
    redo_action(stack, "Redo", owner)
    stack.push(QUndoCommand("threshold"))
    shiboken6.delete(owner)

    with qtbot.captureExceptions() as raised:
        stack.clear()

    assert raised == []


def test_edits_of_one_kind_are_undone_at_once() -> None:
    shown, stack = [], QUndoStack()
    stack.push(Edit("move", 0, 1, shown.append, merging=3))
    stack.push(Edit("move", 1, 2, shown.append, merging=3))
    stack.push(Edit("set", 2, 5, shown.append))
    stack.push(Edit("set", 5, 6, shown.append))
    assert stack.count() == 3 and shown == [1, 2, 5, 6]
    while stack.canUndo():
        stack.undo()
    assert shown[4:] == [5, 2, 0]
    stack.redo()
    assert shown[-1] == 2


def test_the_oldest_entries_are_forgotten_with_what_they_hold(qtbot) -> None:
    """Entries of deleted takes hold the audio: hours of work must not keep all of it."""
    state = AppState(Jobs(lambda command: None))
    audio = [np.zeros(1) for _ in range(UNDO_LIMIT + 30)]
    kept = [weakref.ref(one) for one in audio]
    put: list[np.ndarray] = []
    while audio:
        state.undo_stack.push(Edit("delete a take", audio.pop(0), None, put.append))
    put.clear()

    assert state.undo_stack.count() == UNDO_LIMIT
    gc.collect()
    assert [one() is not None for one in kept] == [False] * 30 + [True] * UNDO_LIMIT
