"""The similarity map: how diagonal the attention of every layer is at every step."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen
from PySide6.QtWidgets import QWidget

from paretone_app.numbers import fixed
from paretone_app.plotting.cell_grid import CellGrid
from paretone_app.shell.colours import Colours


def similarity_map(colours: Colours) -> pg.ColorMap:
    """Perceptually uniform, safe for colour-blind readers, with low values near the ground."""
    return pg.colormap.get("viridis")


class SimilarityGrid(CellGrid):
    """Diagonal similarity of the attention per layer and step; marked cells are outlined."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._similarities = np.full((0, 0), np.nan)
        self._cut: float | None = None
        self._captured: tuple[int, int] | None = None
        self.setAccessibleName("Diagonal similarity: layers down, steps to the right. Space captures the attention.")

    @property
    def ends(self) -> tuple[float, float] | None:
        """Smallest and largest measured similarity; ``None`` when nothing is measured."""
        measured = self._similarities[np.isfinite(self._similarities)]
        return (float(measured.min()), float(measured.max())) if measured.size else None

    def show_similarities(self, similarities: np.ndarray, cut: float | None) -> None:
        """Show (layers, steps) values, NaN where not measured; those from ``cut`` on are marked."""
        self._similarities, self._cut = similarities, cut
        self.set_shape(*similarities.shape)

    def set_layout(self, layers: int, steps: int) -> None:
        """Cells to choose from while nothing is measured."""
        if self._similarities.shape != (layers, steps):
            self.show_similarities(np.full((layers, steps), np.nan), None)

    def show_captured(self, cell: tuple[int, int] | None) -> None:
        """Outline the cell whose attention is shown."""
        self._captured = cell
        self.update()

    @property
    def marked(self) -> np.ndarray:
        """(layers, steps) bool: cells at or above the cut."""
        if self._cut is None:
            return np.zeros(self._similarities.shape, bool)
        return self._similarities >= self._cut

    def describe(self, layer: int, step: int) -> str:
        value = self._similarities[layer, step]
        what = f"diagonal similarity {fixed(value, 3)}" if np.isfinite(value) else "not measured"
        if self.marked[layer, step]:
            what += ", marked: tried first"
        return f"{self.place_text(layer, step)}: {what}."

    def cell_text(self, layer: int, step: int) -> str:
        value = self._similarities[layer, step]
        return fixed(value, 4) if np.isfinite(value) else ""

    def empty_text(self) -> str:
        return "Load a model, then select a layer and a step to see its attention."

    def paint_cells(self, painter: QPainter) -> None:
        low, high = self.ends or (0.0, 1.0)
        finite = np.isfinite(self._similarities)
        scaled = (np.where(finite, self._similarities, low) - low) / (high - low or 1.0)
        table = similarity_map(self.colours).getLookupTable(nPts=256)
        rows = table[(scaled * 255).astype(int)]
        unmeasured = QBrush(QColor(self.colours.border), Qt.BrushStyle.Dense7Pattern)
        gap = 1 if self.cell_rectangle(0, 0).width() > 4 else 0
        for layer in range(self.layers):
            for step in range(self.steps):
                cell = self.cell_rectangle(layer, step).adjusted(0, 0, -gap, -gap)
                if finite[layer, step]:
                    painter.fillRect(cell, QColor(*(int(one) for one in rows[layer, step][:3])))
                else:
                    painter.fillRect(cell, QColor(self.colours.base))
                    painter.fillRect(cell, unmeasured)
        for layer, step in np.argwhere(self.marked):
            cell = self.cell_rectangle(int(layer), int(step)).adjusted(0, 0, -gap - 1, -gap - 1)
            # Dark outside, light inside: visible on every colour of the map.
            painter.setPen(QPen(QColor("#000000"), 1))
            painter.drawRect(cell)
            painter.setPen(QPen(QColor("#ffffff"), 1))
            painter.drawRect(cell.adjusted(1, 1, -1, -1))
        if self._captured is not None and self.has(self._captured):
            painter.setPen(QPen(QColor(self.colours.danger), 3))
            painter.drawRect(self.cell_rectangle(*self._captured).adjusted(-2, -2, 1, 1))
