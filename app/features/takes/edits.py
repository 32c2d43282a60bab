"""Starring and deleting takes, each as an entry of the undo stack."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoStack

from app.features.takes.table import FailedTake, TakesModel
from app.numbers import counted
from app.state.undo import Edit
from engine.errors import PlainError
from engine.setting.library import Library, TakeSummary
from engine.setting.take import Take


class TakeEdits(QObject):
    """Deleted takes are kept in memory, with their audio, as long as their entry is."""

    edited = Signal()
    """Takes were changed, or are gone or back."""
    problem = Signal(str)
    """A sentence about what could not be done."""

    def __init__(self, library: Library, model: TakesModel, stack: QUndoStack, parent: QObject) -> None:
        super().__init__(parent)
        self.library, self._model, self._stack = library, model, stack

    def star(self, takes: Sequence[TakeSummary]) -> None:
        """Star ``takes``; when all of them are starred, take the stars away."""
        kept = [take for take in takes if not isinstance(take, FailedTake)]
        on = not all(take.starred for take in kept)
        changed = [take.id for take in kept if take.starred != on]
        if changed:
            name = f"{'star' if on else 'unstar'} {counted(len(changed), 'take', 'takes')}"
            self._stack.push(Edit(name, not on, on, lambda starred: self._star(changed, starred)))

    def delete(self, takes: Sequence[TakeSummary]) -> None:
        """Delete ``takes``, audio included. One whose audio cannot be read cannot come back."""
        whole: list[Take] = []
        lost: list[TakeSummary] = []
        failed = [one for one in takes if isinstance(one, FailedTake)]
        for one in takes:
            if not isinstance(one, FailedTake):
                try:
                    whole.append(self.library.load(one.id))
                except PlainError:
                    lost.append(one)
        if lost:
            self._put(lost, False)
        if whole or failed:
            name = f"delete {counted(len(whole) + len(failed), 'take', 'takes')}"
            self._stack.push(Edit(name, True, False, lambda there: self._put([*whole, *failed], there)))

    def _star(self, takes: Sequence[str], on: bool) -> None:
        try:
            for take in takes:
                if take in self.library:
                    self.library.star(take, on)
        except PlainError as error:
            self.problem.emit(str(error))
        self.edited.emit()

    def _put(self, takes: Sequence[Take | TakeSummary], there: bool) -> None:
        """Have ``takes`` in the library, or not."""
        try:
            for one in takes:
                if isinstance(one, FailedTake):
                    (self._model.add if there else self._model.forget)(one)
                elif not there and one.id in self.library:
                    self.library.delete(one.id)
                elif there and isinstance(one, Take) and one.id not in self.library:
                    self.library.add(one)
        except PlainError as error:
            self.problem.emit(str(error))
        self.edited.emit()
