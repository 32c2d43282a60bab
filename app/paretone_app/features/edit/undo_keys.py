"""Ctrl+Z where something has the focus: a text field undoes typing while it can; everything else is left to the window.

Qt's fields keep these keys even if they have nothing to undo, and a spin box never undoes what was taken over.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Slot
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)
from shiboken6 import isValid

from paretone_app.widgets.boxes import DoubleSpinBox, SpinBox

_FIELDS = (QLineEdit, QPlainTextEdit, QTextEdit, QAbstractSpinBox, QComboBox)


class UndoKeys(QObject):
    """Watches the field with the focus."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._field: QWidget | None = None
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._follow)

    @Slot(QWidget, QWidget)
    def _follow(self, _before: QWidget | None, focus: QWidget | None) -> None:
        if self._field is not None and isValid(self._field):
            self._field.removeEventFilter(self)
        self._field = focus if isinstance(focus, _FIELDS) else None
        if self._field is not None:
            self._field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is not QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
            return False
        undoes, redoes = (event.matches(one) for one in (QKeySequence.StandardKey.Undo, QKeySequence.StandardKey.Redo))
        if not (undoes or redoes) or not isinstance(watched, QWidget) or keeps(watched, redoes):
            return False
        event.ignore()
        return True


def keeps(field: QWidget, redoes: bool = False) -> bool:
    """Whether ``field`` itself has typing to undo, or to redo."""
    if isinstance(field, SpinBox | DoubleSpinBox):
        edit = field.lineEdit()
        return edit.text() != _taken_over(field) and keeps(edit, redoes)
    if isinstance(field, QComboBox):
        typed = field.lineEdit()
        return typed is not None and keeps(typed, redoes)
    if isinstance(field, QLineEdit):
        return not field.isReadOnly() and (field.isRedoAvailable() if redoes else field.isUndoAvailable())
    if isinstance(field, QPlainTextEdit | QTextEdit):
        document = field.document()
        return not field.isReadOnly() and (document.isRedoAvailable() if redoes else document.isUndoAvailable())
    return False


def _taken_over(box: SpinBox | DoubleSpinBox) -> str:
    """What the box shows of its value while nothing is typed."""
    special = box.specialValueText()
    if special and box.value() == box.minimum():
        return special
    shown = box.textFromValue(box.value())  # type: ignore[arg-type]  # Each takes its own kind of number.
    return f"{box.prefix()}{shown}{box.suffix()}"
