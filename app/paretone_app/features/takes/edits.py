"""Starring and deleting takes, each as an entry of the undo stack."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoStack

from paretone.errors import PlainError
from paretone.setting.library import DeletedTakes, KeptAudio, Library, TakeSummary
from paretone_app.features.takes.table import FailedTake, TakesModel
from paretone_app.numbers import counted
from paretone_app.state.undo import Edit


class TakeEdits(QObject):
    """Deleted takes can come back as long as their entry of the stack is there, see
    :class:`paretone.setting.library.DeletedTakes`."""

    edited = Signal()
    """Takes were changed, or are gone or back."""
    problem = Signal(str)
    """A sentence about what could not be done."""

    def __init__(self, library: Library, model: TakesModel, stack: QUndoStack, parent: QObject) -> None:
        super().__init__(parent)
        self._model, self._stack = model, stack
        self.set_library(library)

    def star(self, takes: Sequence[TakeSummary]) -> None:
        """Star ``takes``; when all of them are starred, take the stars away."""
        kept = [take for take in takes if not isinstance(take, FailedTake)]
        on = not all(take.starred for take in kept)
        changed = [take.id for take in kept if take.starred != on]
        if changed:
            name = f"{'star' if on else 'unstar'} {counted(len(changed), 'take', 'takes')}"
            self._stack.push(Edit(name, not on, on, lambda starred: self._star(changed, starred)))

    def set_library(self, library: Library) -> None:
        """Edit the takes of another library."""
        self.library, self._kept = library, KeptAudio(library.folder)

    def delete(self, takes: Sequence[TakeSummary]) -> None:
        """Delete ``takes``, audio included. One whose audio cannot be read cannot come back."""
        failed = [one for one in takes if isinstance(one, FailedTake)]
        deleted, lost = DeletedTakes(self._kept), 0
        try:
            for one in takes:
                if isinstance(one, FailedTake):
                    continue
                try:
                    whole = self.library.load(one.id)
                except PlainError:
                    if one.id in self.library:
                        self.library.delete(one.id)
                        lost += 1
                else:
                    deleted.delete(whole, self.library)
        except PlainError as error:
            self.problem.emit(str(error))
        if deleted or failed:
            name = f"delete {counted(len(deleted) + len(failed), 'take', 'takes')}"
            self._stack.push(Edit(name, True, False, lambda there: self._put(deleted, failed, there)))
        elif lost:
            self.edited.emit()

    def _star(self, takes: Sequence[str], on: bool) -> None:
        try:
            for take in takes:
                if take in self.library:
                    self.library.star(take, on)
        except PlainError as error:
            self.problem.emit(str(error))
        self.edited.emit()

    def _put(self, deleted: DeletedTakes, failed: Sequence[FailedTake], there: bool) -> None:
        """Have these takes, or not."""
        for one in failed:
            (self._model.add if there else self._model.forget)(one)
        try:
            (deleted.restore if there else deleted.delete_again)(self.library)
        except PlainError as error:
            self.problem.emit(str(error))
        self.edited.emit()
