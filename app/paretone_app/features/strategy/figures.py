"""A strategy table as text: cells in words, for screen readers and for copying, and its counts."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QLabel, QWidget

from paretone.techniques.ditreducio import TECHNIQUE
from paretone_app.features.strategy.grid import StrategyGrid
from paretone_app.shell.entries import TERM, Term
from paretone_app.shell.theme import BROAD
from paretone_app.widgets import build
from paretone_app.widgets.layouts import GridLayout

Index = QModelIndex | QPersistentModelIndex


_PAPER = f"{TECHNIQUE.paper.title}, {TECHNIQUE.paper.reference}"


class TableModel(QAbstractTableModel):
    """The grid as a table for screen readers and for copying."""

    def __init__(self, grid: StrategyGrid) -> None:
        super().__init__(grid)
        self._grid = grid

    def reload(self) -> None:
        self.beginResetModel()
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else self._grid.layers

    def columnCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else self._grid.steps

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._grid.cell_text(index.row(), index.column())
        if role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            return self._grid.describe(index.row(), index.column())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignCenter
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return f"{'Layer' if orientation is Qt.Orientation.Vertical else 'Step'} {section + 1}"


class Figures(QWidget):
    """Counts of the shown table, and below them those of the reference table."""

    COLUMNS = (
        ("Compute", "Cells that compute both modules for all branches."),
        ("Temporal", "Cells that repeat the last computed output."),
        ("Branch", "Cells that compute one branch only."),
        ("Skipped", "Share of cells that skip something."),
        ("Operations", "Operations of the backbone relative to no skipping, predicted from the table."),
        ("Allows up to", "Speed-up of the backbone if measured time fell as much as operations."),
    )

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        grid = GridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(BROAD)
        grid.setVerticalSpacing(0)
        self._rows: list[list[QLabel]] = []
        for column, (name, meaning) in enumerate(self.COLUMNS, start=1):
            head = build.label(name, "muted", tip=meaning)
            head.setProperty(TERM, name)
            head.setAlignment(Qt.AlignmentFlag.AlignRight)
            grid.addWidget(head, 0, column)
        for row in (1, 2):
            labels = [QLabel() for _ in range(len(self.COLUMNS) + 1)]
            for column, label in enumerate(labels):
                if column:
                    label.setAlignment(Qt.AlignmentFlag.AlignRight)
                    label.setToolTip(self.COLUMNS[column - 1][1])
                    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
                grid.addWidget(label, row, column)
            labels[5].setProperty("look", "title")
            labels[6].setProperty("look", "title")
            self._rows.append(labels)
        grid.setColumnStretch(len(self.COLUMNS) + 1, 1)
        self.show_row(1, None)

    def show_row(self, row: int, figures: Sequence[str] | None) -> None:
        """Show the name and figures of one table, or hide its row."""
        for column, label in enumerate(self._rows[row]):
            label.setVisible(figures is not None)
            label.setText("" if figures is None else figures[column])
            if column and figures is not None:
                label.setAccessibleName(f"{figures[0]}, {self.COLUMNS[column - 1][0]}: {figures[column]}")

    def texts(self, row: int) -> list[str]:
        """The texts of a row."""
        return [label.text() for label in self._rows[row]]


TERMS = (
    *(Term(title, meaning) for title, meaning in Figures.COLUMNS),
    Term("Strategy table", "What each layer does at each step: compute, temporal skip or branch skip.", source=_PAPER),
    Term("Temporal skip", "A layer repeats its last computed output instead of computing.", source=_PAPER),
    Term("Branch skip", "A layer computes one branch only, and adds the last difference for the other.", source=_PAPER),
    Term("Calibration", "Tries to skip every layer at every step once, and keeps the skips with an error below δ."),
    Term("Error of a skip", "What one skip changes in the layer's output; its limit is l/L of δ.", source=_PAPER),
)
