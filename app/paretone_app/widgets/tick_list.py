"""A list whose entries are ticked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

_FLAGS = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable


class TickList(QListWidget):
    """Long titles go on in the next line."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        """``name`` is for screen readers."""
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setWordWrap(True)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def offer(self, entries: Iterable[tuple[str, object, bool]], why_not: Mapping[Any, str] | None = None) -> None:
        """Have these in the list: title, value, and whether it is ticked; values of ``why_not`` cannot be ticked, for
        the reason there. Emits nothing."""
        reasons = why_not or {}
        with QSignalBlocker(self):
            self.clear()
            for title, value, ticked in entries:
                item = QListWidgetItem(title, self)
                item.setData(Qt.ItemDataRole.UserRole, value)
                item.setToolTip(reasons.get(value, ""))
                item.setFlags(Qt.ItemFlag.NoItemFlags if value in reasons else _FLAGS)
                on = ticked and value not in reasons
                item.setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)

    @property
    def ticked(self) -> tuple[Any, ...]:
        """The values of the entries that are ticked."""
        items = (self.item(row) for row in range(self.count()))
        return tuple(one.data(Qt.ItemDataRole.UserRole) for one in items if one.checkState() is Qt.CheckState.Checked)
