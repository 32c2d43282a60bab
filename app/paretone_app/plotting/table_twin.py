"""The values of a plot as a table, for keyboard and screen readers."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QTableWidget, QTableWidgetItem, QWidget

from paretone_app.widgets.layouts import VBoxLayout

_WIDEST = 24
"""Greatest initial width of a column, in heights of the font."""


class TableTwin(QWidget):
    """A window with the table; Ctrl+C copies it, Esc closes it."""

    def __init__(self, owner: QWidget) -> None:
        super().__init__(owner, Qt.WindowType.Window)
        self._text = ""
        self.table = QTableWidget()
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.verticalHeader().hide()
        column = VBoxLayout(self)
        column.addWidget(self.table)
        self.setFocusProxy(self.table)

    def show_text(self, title: str, text: str) -> None:
        """Show ``text``, whose cells are set apart by tabs and whose first line is the head."""
        self._text = text
        self.setWindowTitle(f"{title} – Paretone")
        self.table.setAccessibleName(title)
        head, *rows = (line.split("\t") for line in text.splitlines() or [""])
        self.table.setColumnCount(len(head))
        self.table.setHorizontalHeaderLabels(head)
        self.table.setRowCount(len(rows))
        for row, cells in enumerate(rows):
            for place, cell in enumerate(cells[: len(head)]):
                self.table.setItem(row, place, QTableWidgetItem(cell))
        self.table.resizeColumnsToContents()
        em = self.fontMetrics().height()
        for place in range(len(head)):
            self.table.setColumnWidth(place, min(self.table.columnWidth(place), _WIDEST * em))
        self.resize(52 * em, 28 * em)
        self.show()
        self.activateWindow()
        self.table.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self._text)
        elif event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)
