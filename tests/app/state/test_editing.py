"""What the user changes in the selection can be undone and redone, by names that say what it was."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import shiboken6
from PySide6.QtCore import QObject
from PySide6.QtGui import QUndoCommand, QUndoStack

from paretone.errors import SettingError
from paretone_app.shell.actions import StackAction
from paretone_app.state.app_state import UNDO_LIMIT, AppState
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.editing import Edit, Editing
from paretone_app.state.jobs import Jobs
from paretone_app.state.selection import Selection


@pytest.fixture
def stack(qapp) -> QUndoStack:
    return QUndoStack()


@pytest.fixture
def selection(qapp) -> Selection:
    return Selection(Artefacts())


@pytest.fixture
def editing(selection: Selection, stack: QUndoStack) -> Editing:
    return Editing(selection, selection._artefacts, stack)


def test_every_choice_comes_back_in_turn(selection: Selection, editing: Editing, stack: QUndoStack) -> None:
    first, seen = selection.choices, [selection.choices]
    technique = next(one for one in selection.techniques if not selection.is_used(one.name))
    for change in (
        lambda: editing.set_option("steps", 9),
        lambda: editing.switch(technique.name, True),
        lambda: editing.choose_voice(selection.voices[1].id),
        lambda: editing.set_text("Another sentence."),
        lambda: editing.set_text("Another sentence!", typed=True),
        lambda: editing.set_seed(7),
        lambda: editing.set_seed_locked(False),
    ):
        change()
        seen.append(selection.choices)
    names = [stack.text(index) for index in range(stack.count())]
    assert names[0] == "set steps 9" and names[1] == f"switch on {technique.title}" and names[3] == "choose sentence"
    assert names[2].startswith("choose voice ") and names[4:] == ["edit text", "set seed 7", "unlock seed"]
    for before in reversed(seen[:-1]):
        stack.undo()
        assert selection.choices == before
    assert selection.choices == first and not stack.canUndo()
    for after in seen[1:]:
        stack.redo()
        assert selection.choices == after


def test_a_knob_that_is_moved_on_and_on_is_one_entry(selection: Selection, editing: Editing, stack: QUndoStack) -> None:
    before = selection.options["steps"]
    for steps in (9, 8, 7):
        editing.set_option("steps", steps)
    assert stack.count() == 1 and stack.undoText() == "set steps 7"
    editing.set_option("guidance", 1.5)
    assert stack.count() == 2 and stack.undoText() == "set guidance 1.5"
    stack.undo()
    stack.undo()
    assert selection.options["steps"] == before


def test_back_where_it_was_there_is_nothing_to_undo(selection: Selection, editing: Editing, stack: QUndoStack) -> None:
    before = selection.options["steps"]
    editing.set_option("steps", 9)
    editing.set_option("steps", before)
    editing.set_option("steps", before)
    assert not stack.canUndo()
    with pytest.raises(SettingError):
        editing.set_option("steps", -1)
    assert not stack.count() and selection.options["steps"] == before, "what is refused makes no entry"
    setting = selection.baseline_setting
    editing.set_option("steps", 6)
    editing.adopt_setting(setting)
    assert stack.undoText() == "use setting of a study" and selection.setting.techniques == ()


def test_what_changed_otherwise_stays_when_an_edit_is_undone(
    selection: Selection, editing: Editing, stack: QUndoStack
) -> None:
    editing.set_option("steps", 9)
    selection.set_seed(41)
    stack.undo()
    assert selection.seed == 41


def test_actions_follow_their_stack(qtbot) -> None:
    owner, stack = QObject(), QUndoStack()
    undo, redo = StackAction(stack, "undo", "Undo", owner), StackAction(stack, "redo", "Redo", owner)
    assert (undo.isEnabled(), redo.isEnabled(), undo.text(), redo.text()) == (False, False, "Undo", "Redo")

    stack.push(QUndoCommand("threshold"))
    assert (undo.isEnabled(), undo.text()) == (True, "Undo: threshold")

    undo.trigger()
    assert stack.index() == 0
    assert (undo.isEnabled(), redo.isEnabled(), redo.text()) == (False, True, "Redo: threshold")

    redo.trigger()
    assert stack.index() == 1


def test_a_stack_outlives_its_actions(qtbot) -> None:
    """When a window ends, its actions may end before the stack does, and the stack tells of its emptying still."""
    owner, stack = QObject(), QUndoStack()
    StackAction(stack, "undo", "Undo", owner)
    StackAction(stack, "redo", "Redo", owner)
    stack.push(QUndoCommand("threshold"))
    shiboken6.delete(owner)

    with qtbot.captureExceptions() as raised:
        stack.clear()

    assert raised == []


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
