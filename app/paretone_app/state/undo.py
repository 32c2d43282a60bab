"""Edits that can be undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtGui import QUndoCommand

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
