"""What Qt's combo boxes can do only through their model."""

from __future__ import annotations

from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox


def entry(combo: QComboBox, index: int) -> QStandardItem:
    """An entry of a combo box that has Qt's usual model: it can be disabled, and have a tool tip. Raises
    :class:`TypeError` for a combo box with another model."""
    model = combo.model()
    if not isinstance(model, QStandardItemModel):
        raise TypeError(f"A {type(model).__name__} has no entries that can be disabled.")
    return model.item(index)
