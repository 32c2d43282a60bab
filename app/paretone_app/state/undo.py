"""Edits that can be undone, and the actions that undo and redo them.

Qt can make them (``QUndoStack.createUndoAction``), but Python's wrappers of actions that Qt made were seen to end in
long sessions while the actions lived on, and every use of them raised. Those of actions that Python made stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QUndoCommand, QUndoStack

ALONE = -1
"""Id of edits that are never merged."""


class Edit(QUndoCommand):
    """A change from ``before`` to ``after``, either of which ``put`` puts into place. Successive edits of one kind
    ``merging`` are one."""

    def __init__(self, text: str, before: Any, after: Any, put: Callable[[Any], object], merging: int = ALONE) -> None:
        super().__init__(text)
        self._before, self._after, self._put, self._merging = before, after, put, merging

    def id(self) -> int:
        return self._merging

    def mergeWith(self, other: QUndoCommand) -> bool:
        if not isinstance(other, Edit):
            return False
        self._after = other._after
        return True

    def redo(self) -> None:
        self._put(self._after)

    def undo(self) -> None:
        self._put(self._before)


def undo_action(stack: QUndoStack, title: str, owner: QObject, first: Callable[[], object] = lambda: None) -> QAction:
    """Undoes the last command of ``stack``, whose name follows ``title``; of ``owner``. ``first`` takes over what is
    still being typed, which is the last command then."""

    def run() -> None:
        first()
        stack.undo()

    action = _StackAction(title, "undo", owner, run, stack.canUndo(), stack.undoText())
    stack.canUndoChanged.connect(action.setEnabled)
    stack.undoTextChanged.connect(action.name)
    return action


def redo_action(stack: QUndoStack, title: str, owner: QObject) -> QAction:
    """Redoes what was undone last, likewise."""
    action = _StackAction(title, "redo", owner, stack.redo, stack.canRedo(), stack.redoText())
    stack.canRedoChanged.connect(action.setEnabled)
    stack.redoTextChanged.connect(action.name)
    return action


class _StackAction(QAction):
    """Follows a stack by its own methods alone: Qt drops those connections with the action, and a stack that outlives
    its window says goodbye to nobody."""

    def __init__(
        self, title: str, verb: str, owner: QObject, slot: Callable[[], object], enabled: bool, command: str
    ) -> None:
        super().__init__(title, owner, enabled=enabled)
        self._title, self._verb = title, verb
        self._slot = slot
        self.setStatusTip(f"{verb.capitalize()} the last change of the setting, the takes or the view")
        self.name(command)
        self.triggered.connect(self._run)

    def name(self, command: str) -> None:
        """Says which command it is about; an empty name says none."""
        self.setText(f"{self._title}: {command}" if command else self._title)
        self.setToolTip(f"{self._verb.capitalize()}: {command}" if command else f"Nothing to {self._verb}.")

    def _run(self) -> None:
        self._slot()
