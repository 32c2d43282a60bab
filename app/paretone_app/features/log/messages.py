"""The messages that were shown, to read again: the newest first."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtGui import QColor, QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QTextEdit, QWidget

from paretone_app.shell.banner import ERROR, INFO, WARNING
from paretone_app.shell.colours import Colours
from paretone_app.shell.notices import Said
from paretone_app.widgets import build
from paretone_app.widgets.layouts import VBoxLayout

_LEVELS = {INFO: "Information", WARNING: "Warning", ERROR: "Error"}


class MessagesDialog(QDialog):
    """Opened with ``open()``."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Messages")
        self._inks = {INFO: colours.muted, WARNING: colours.warning, ERROR: colours.danger}
        self._history: tuple[Said, ...] = ()
        self.text = build.named(QTextEdit(readOnly=True), "Messages, the newest first")
        self.text.setTabChangesFocus(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Co&py all", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text.toPlainText()))
        buttons.rejected.connect(self.reject)
        layout = VBoxLayout(self)
        layout.addWidget(self.text)
        layout.addWidget(buttons)
        em = self.fontMetrics().height()
        self.resize(44 * em, 26 * em)

    def show_history(self, history: Iterable[Said]) -> None:
        """Show these messages, the newest of which is the last."""
        if tuple(history) == self._history and not self.text.document().isEmpty():
            return
        self._history = tuple(history)
        self.text.clear()
        cursor = QTextCursor(self.text.document())
        plain, level = QTextCharFormat(), QTextCharFormat()
        for one in reversed(self._history):
            level.setForeground(QColor(self._inks[one.level]))
            cursor.insertText(f"{one.when:%H:%M:%S}  {_LEVELS[one.level]}: ", level)
            cursor.insertText(f"{one.sentence}\n", plain)
        if not self._history:
            cursor.insertText("No message was shown yet.", plain)
        self.text.moveCursor(QTextCursor.MoveOperation.Start)
