"""The coloured strategy table and its legend: blue, orange and grey, with letters or hatches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPointF, QRect, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QKeyEvent, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QLabel, QWidget

from paretone.figures.glyphs import CELLS_DARK, CELLS_LIGHT
from paretone.sampling.actions import SkipAction
from paretone.techniques.ditreducio import TECHNIQUE
from paretone_app.plotting.cell_grid import CellGrid
from paretone_app.shell.colours import DARK, Colours
from paretone_app.shell.entries import TERM, Term
from paretone_app.shell.theme import BROAD
from paretone_app.widgets import build
from paretone_app.widgets.layouts import GridLayout
from paretone_app.widgets.panel_parts import Index

_PAPER = f"{TECHNIQUE.paper.title}, {TECHNIQUE.paper.reference}"


class TableModel(QAbstractTableModel):
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
        (
            "Operations",
            "Operations of the backbone, or of the flow after a language model, relative to no skipping, predicted "
            "from the table.",
        ),
        ("Allows up to", "Speed-up of the backbone, or of that flow, if measured time fell as much as operations."),
    )

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        grid = GridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(BROAD)
        grid.setVerticalSpacing(0)
        self._rows: list[list[QLabel]] = []
        self._heads: dict[str, QLabel] = {}
        for column, (name, meaning) in enumerate(self.COLUMNS, start=1):
            head = build.label(name, "muted", tip=meaning)
            head.setProperty(TERM, name)
            head.setAlignment(Qt.AlignmentFlag.AlignRight)
            grid.addWidget(head, 0, column)
            self._heads[name] = head
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

    def name_operations(self, title: str) -> None:
        self._heads["Operations"].setText(title)

    def show_row(self, row: int, figures: Sequence[str] | None) -> None:
        for column, label in enumerate(self._rows[row]):
            label.setVisible(figures is not None)
            label.setText("" if figures is None else figures[column])
            if column and figures is not None:
                head = self._heads[self.COLUMNS[column - 1][0]].text()
                label.setAccessibleName(f"{figures[0]}, {head}: {figures[column]}")

    def texts(self, row: int) -> list[str]:
        return [label.text() for label in self._rows[row]]


TERMS = (
    *(Term(title, meaning) for title, meaning in Figures.COLUMNS),
    Term("Strategy table", "What each layer does at each step: compute, temporal skip or branch skip.", source=_PAPER),
    Term("Temporal skip", "A layer repeats its last computed output instead of computing.", source=_PAPER),
    Term("Branch skip", "A layer computes one branch only, and adds the last difference for the other.", source=_PAPER),
    Term("Calibration", "Tries to skip every layer at every step once, and keeps the skips with an error below δ."),
    Term("Error of a skip", "What one skip changes in the layer's output; its limit is l/L of δ.", source=_PAPER),
)


NAMES = {SkipAction.NONE: "compute", SkipAction.TS: "temporal skip", SkipAction.BS: "branch skip"}
FIRST_STEP_REASON = "Step 1 always computes: the cache is still empty."
UNTRIED = -1
"""A cell that a running calibration has not decided yet."""

_LETTERS = {SkipAction.NONE: "", SkipAction.TS: "T", SkipAction.BS: "B"}
_HATCHES = {
    SkipAction.NONE: Qt.BrushStyle.NoBrush,
    SkipAction.TS: Qt.BrushStyle.BDiagPattern,
    SkipAction.BS: Qt.BrushStyle.HorPattern,
}


def action_colours(colours: Colours) -> dict[SkipAction, tuple[str, str]]:
    dark = colours == DARK
    lettering = ("#e8ebf1", "#06121f", "#2a1a00") if dark else ("#18202c", "#ffffff", "#2a1a00")
    pairs = zip(CELLS_DARK if dark else CELLS_LIGHT, lettering, strict=True)
    return dict(zip((SkipAction.NONE, SkipAction.TS, SkipAction.BS), pairs, strict=True))


class StrategyGrid(CellGrid):
    """The coloured table. Shows a table, its differences from a reference table, or a running calibration."""

    action_wanted = Signal(object)
    """The user pressed T, B or C: the action for the whole range."""

    own_keys = (*CellGrid.own_keys, Qt.Key.Key_T, Qt.Key.Key_B, Qt.Key.Key_C)

    _reason = ""  # A class attribute, because it is read during construction.

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self._actions = np.zeros((0, 0), np.int8)
        self._reference: np.ndarray | None = None
        self._reference_name = ""
        self.lit: tuple[int, int] | None = None
        self.setAccessibleName("Strategy table: layers down, steps to the right")

    def set_reason(self, reason: str) -> None:
        """Set why the model has no tables, as a sentence, or ``""``."""
        if reason != self._reason:
            self._reason = reason
            self.refresh()

    def show_actions(self, actions: np.ndarray) -> None:
        """Show (layers, steps) values of :class:`SkipAction` or :data:`UNTRIED`."""
        self._actions = actions
        self.set_shape(*actions.shape)

    def show_reference(self, actions: np.ndarray | None, name: str = "") -> None:
        """Mark cells that differ from a reference table of the same shape, called ``name``; ``None`` marks none."""
        self._reference, self._reference_name = actions, name
        self.refresh()

    def light(self, cell: tuple[int, int] | None) -> None:
        self.lit = cell
        self.update()

    def value(self, layer: int, step: int) -> int:
        return int(self._actions[layer, step])

    def describe(self, layer: int, step: int) -> str:
        value = self.value(layer, step)
        what = "not tried yet" if value == UNTRIED else NAMES[SkipAction(value)]
        text = f"{self.place_text(layer, step)}: {what}"
        if self._reference is not None and self._reference[layer, step] != value:
            text += f"; {self._reference_name.lower()}: {NAMES[SkipAction(int(self._reference[layer, step]))]}"
        return f"{text}. {FIRST_STEP_REASON}" if step == 0 else f"{text}."

    def cell_text(self, layer: int, step: int) -> str:
        value = self.value(layer, step)
        return "?" if value == UNTRIED else SkipAction(value).name

    def empty_text(self) -> str:
        return self._reason or "No strategy table yet. Calibrate, or import a table."

    def paint_cells(self, painter: QPainter) -> None:
        fills = action_colours(self.colours)
        letters = self.letter_font()
        if letters is not None:
            painter.setFont(letters)
        gap = 1 if self.cell_rectangle(0, 0).width() > 4 else 0
        for layer, step in np.ndindex(self._actions.shape):
            cell = self.cell_rectangle(layer, step).adjusted(0, 0, -gap, -gap)
            value = self.value(layer, step)
            if value == UNTRIED:
                painter.fillRect(cell, QColor(self.colours.base))
                painter.fillRect(cell, QBrush(QColor(self.colours.border), Qt.BrushStyle.Dense7Pattern))
                continue
            action = SkipAction(value)
            other = None if self._reference is None else SkipAction(int(self._reference[layer, step]))
            if other is None:
                paint_action(painter, cell, action, fills, letters is not None)
            elif other is action:
                painter.setOpacity(0.28)
                paint_action(painter, cell, action, fills, letters=False)
                painter.setOpacity(1.0)
            else:
                _paint_difference(painter, cell, action, other, fills, self.colours)
            if step == 0:
                painter.fillRect(cell, QBrush(QColor(self.colours.border), Qt.BrushStyle.BDiagPattern))
        if self.lit is not None and self.has(self.lit):
            lit = self.cell_rectangle(*self.lit)
            painter.setPen(QPen(QColor(self.colours.danger), 3))
            painter.drawRect(lit.adjusted(-2, -2, 1, 1))
        painter.setFont(self.font())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        chosen = {Qt.Key.Key_C: SkipAction.NONE, Qt.Key.Key_T: SkipAction.TS, Qt.Key.Key_B: SkipAction.BS}
        plain = event.modifiers() in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier)
        if plain and self.layers and Qt.Key(event.key()) in chosen:
            self.action_wanted.emit(chosen[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)


def paint_action(
    painter: QPainter, cell: QRect, action: SkipAction, fills: dict[SkipAction, tuple[str, str]], letters: bool
) -> None:
    """Paint a cell: filled, and lettered or hatched to be readable without colour."""
    fill, ink = (QColor(one) for one in fills[action])
    painter.fillRect(cell, fill)
    if letters and _LETTERS[action]:
        painter.setPen(ink)
        painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, _LETTERS[action])
    elif _LETTERS[action]:
        ink.setAlphaF(0.55)
        painter.fillRect(cell, QBrush(ink, _HATCHES[action]))


def _paint_difference(
    painter: QPainter, cell: QRect, action: SkipAction, other: SkipAction, fills: dict, colours: Colours
) -> None:
    """Paint the shown table's action in the upper left half, the reference table's in the lower right."""
    left, top, right, bottom = cell.left(), cell.top(), cell.right() + 1, cell.bottom() + 1
    painter.setPen(Qt.PenStyle.NoPen)
    for corner, one in (((left, top), action), ((right, bottom), other)):
        triangle = QPolygonF([QPointF(*corner), QPointF(right, top), QPointF(left, bottom)])
        ink = QColor(fills[one][1])
        ink.setAlphaF(0.55)
        for brush in (QBrush(QColor(fills[one][0])), QBrush(ink, _HATCHES[one])):
            painter.setBrush(brush)
            painter.drawPolygon(triangle)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(colours.text), 1))
    painter.drawRect(cell.adjusted(0, 0, -1, -1))


def legend(colours: Colours, live: bool, difference: bool) -> str:
    """The legend as rich text; ``live``: with cells of a running calibration; ``difference``: with split cells."""
    fills = action_colours(colours)
    entries = [
        f'<span style="background:{fills[action][0]}; color:{fills[action][1]}">&nbsp;{letter or "&nbsp;"}&nbsp;</span>'
        f"&nbsp;{NAMES[action]}"
        for action, letter in _LETTERS.items()
    ]
    if live:
        entries += [f'<span style="color:{colours.border}">▒</span>&nbsp;not tried yet']
        entries += [f'<span style="color:{colours.danger}">□</span>&nbsp;being tried']
    elif difference:
        entries += [f'<span style="color:{fills[SkipAction.TS][0]}">◤</span>◢&nbsp;this table, the other']
    return " &nbsp; ".join(entries)
