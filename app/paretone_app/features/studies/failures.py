"""The failed takes of a study, as a table."""

from __future__ import annotations

from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from paretone.models.own_voices import shown_name
from paretone_app.results.study import OpenStudy

_COLUMNS = "Setting", "Sentence", "Reason"


class FailuresTable(QTableWidget):
    """What failed, and why."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(_COLUMNS), parent)
        self._shown: list[tuple[str, str, str]] = []
        self.setAccessibleName("Failed takes")
        self.setHorizontalHeaderLabels(_COLUMNS)
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        for column in range(2):
            self.setColumnWidth(column, 18 * self.fontMetrics().height())

    def show_summary(self, summary: OpenStudy | None) -> None:
        """Show the failures of a study; nothing is touched where they are the same."""
        rows = _rows(summary) if summary is not None else []
        if rows == self._shown:
            return
        self._shown = rows
        self.setRowCount(len(rows))
        for line, texts in enumerate(rows):
            for column, text in enumerate(texts):
                item = QTableWidgetItem(text)
                item.setToolTip(text)
                self.setItem(line, column, item)


def _rows(summary: OpenStudy) -> list[tuple[str, str, str]]:
    """Setting, sentence and reason of every failure."""
    return [
        (
            one.setting,
            one.text if one.seed is None else f"“{one.text}” ({shown_name(one.voice)}, seed {one.seed})",
            one.why,
        )
        for one in summary.failures
    ]
