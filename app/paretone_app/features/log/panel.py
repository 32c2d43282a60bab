"""Log: what happened when, for people who report a problem."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import Slot
from PySide6.QtGui import QColor, QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import (
    QLabel,
    QPlainTextEdit,
    QWidget,
)

from paretone_app.shell.colours import Colours
from paretone_app.shell.notices import Level
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout

_LONGEST = 20_000
"""Entries that are kept; older ones are dropped."""


class LogPanel(QWidget):
    """Entries with time and level; entries below the chosen level are kept but not shown."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._entries: list[tuple[str, Level, str]] = []
        self._text = build.named(QPlainTextEdit(readOnly=True, undoRedoEnabled=False), "Log entries")
        self._text.setMaximumBlockCount(_LONGEST)
        self._text.setTabChangesFocus(True)
        titles = "Everything", "Information", "Warnings", "Errors"
        self._level = build.combo("Lowest level shown", zip(titles, Level, strict=True))
        self._level.setCurrentIndex(Level.INFO)
        self._level.currentIndexChanged.connect(self._show_all)
        copy = build.button("Co&py all", self.copy, "Copy the whole log with details, for a bug report")
        clear = build.button("C&lear", self.clear)
        row = HBoxLayout()
        label = QLabel("Sh&ow")
        label.setBuddy(self._level)
        for widget in (label, self._level):
            row.addWidget(widget)
        row.addStretch(1)
        for widget in (copy, clear):
            row.addWidget(widget)
        layout = VBoxLayout(self)
        layout.addLayout(row)
        layout.addWidget(self._text)

    def add(self, level: Level, text: str) -> None:
        """Append an entry with the present time."""
        entry = datetime.now().strftime("%H:%M:%S.%f")[:-3], level, text.rstrip()
        self._entries.append(entry)
        del self._entries[:-_LONGEST]
        if level >= self._level.currentData():
            self._append(entry)

    def plain_text(self) -> str:
        """All entries, a line or more each."""
        return "\n".join(f"{when}  {level.name:<7}  {text}" for when, level, text in self._entries)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self._show_all()

    @Slot()
    def copy(self) -> None:
        """Put the whole log on the clipboard."""
        QGuiApplication.clipboard().setText(self.plain_text())

    @Slot()
    def clear(self) -> None:
        """Forget all entries."""
        self._entries.clear()
        self._text.clear()

    @Slot()
    def _show_all(self) -> None:
        self._text.clear()
        lowest = self._level.currentData()
        for entry in self._entries:
            if entry[1] >= lowest:
                self._append(entry)

    def _append(self, entry: tuple[str, Level, str]) -> None:
        when, level, text = entry
        colours = {
            Level.DETAIL: self._colours.muted,
            Level.INFO: self._colours.text,
            Level.WARNING: self._colours.warning,
            Level.ERROR: self._colours.danger,
        }
        at_end = self._text.verticalScrollBar().value() == self._text.verticalScrollBar().maximum()
        cursor = QTextCursor(self._text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        if not self._text.document().isEmpty():
            cursor.insertBlock()
        style = QTextCharFormat()
        style.setForeground(QColor(self._colours.muted))
        cursor.insertText(f"{when}  ", style)
        style.setForeground(QColor(colours[level]))
        cursor.insertText(text, style)
        if at_end:
            self._text.verticalScrollBar().setValue(self._text.verticalScrollBar().maximum())
