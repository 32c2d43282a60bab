"""Attention drawn: similarities by layer and step, the map of one cell, and its scale of colours."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QMarginsF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QKeyEvent, QMouseEvent, QPainter, QPen, QTransform
from PySide6.QtWidgets import QWidget

from paretone.figures.scales import Scale
from paretone.figures.scatter import Dimension
from paretone_app.numbers import fixed, general
from paretone_app.plotting.cell_grid import CellGrid
from paretone_app.plotting.frame import pen
from paretone_app.plotting.layers import Shape, Shapes
from paretone_app.plotting.zoom_chart import Wholes, ZoomChart
from paretone_app.shell.colours import DARK, Colours


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


_MOVES = {
    Qt.Key.Key_Left: (-0.1, 0.0),
    Qt.Key.Key_Right: (0.1, 0.0),
    Qt.Key.Key_Up: (0.0, 0.1),
    Qt.Key.Key_Down: (0.0, -0.1),
}
"""As shares of the section."""


def attention_map(colours: Colours) -> pg.ColorMap:
    """Perceptually uniform, with no attention in the colour of the ground."""
    return pg.colormap.get("magma" if colours == DARK else "CET-L17")


class AttentionPlot(ZoomChart):
    """The attention map of one branch: queries down, keys to the right."""

    own_keys = tuple(_MOVES)
    ideal, least = (16.0, 16.0), (8.0, 8.0)

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__("Attention map", colours, parent)
        self.image = pg.ImageItem(axisOrder="row-major")
        self.frame.view.addItem(self.image, ignoreBounds=True)
        self.frame.margins = QMarginsF(0.0, 0.4, 0.8, 2.7)
        self._boundary = Shapes(self.frame, 1)
        self._weights = np.zeros((1, 1))
        self._unit = ""
        self.extent = 1.0
        self.boundary: float | None = None
        """End of the prompt, on both axes."""
        self.summary = ""
        """Text for screen readers."""
        self.show_again()

    # --- Methods in --------------------------------------------------------------------------------------------------
    def show_map(self, weights: np.ndarray, levels: tuple[float, float], logarithmic: bool) -> None:
        """Show (queries, keys) ``weights`` in colours from one of ``levels`` to the other, which are logarithms if so
        wanted."""
        self._weights = weights
        shown = np.log10(np.maximum(weights, 10.0 ** levels[0])) if logarithmic else weights
        self.image.setImage(np.ascontiguousarray(shown, np.float32), autoLevels=False, levels=levels)
        self._place()

    def show_axes(self, extent: float, boundary: float | None, unit: str, titled: bool) -> None:
        """Set extent of the map on both axes, end of the prompt, and unit; ``titled``: whether the upright axis has a
        title."""
        self.extent, self.boundary, self._unit = extent, boundary, unit
        self.frame.bottom.set_title(Dimension(f"Key, {unit}", "Key"))
        self.frame.left.set_title(Dimension(f"Query, {unit}", "Query") if titled else Dimension(""))
        self._place()

    def _place(self) -> None:
        """Pooled or not, a map covers all frames of the speech."""
        rows, columns = self._weights.shape
        self.image.setTransform(QTransform.fromScale(self.extent / columns, self.extent / rows))
        self.draw_section()

    # --- Sections ----------------------------------------------------------------------------------------------------
    @property
    def wholes(self) -> Wholes:
        return Scale(0.0, self.extent), Scale(self.extent, 0.0)

    def draw_section(self) -> None:
        across, up = (one or whole for one, whole in zip(self.sections, self.wholes, strict=True))
        ink = pen(self.colours.accent, 1.0, Qt.PenStyle.DashLine)
        ends, at = (0.0, self.extent), self.boundary
        lines = [] if at is None else [Shape((at, at), ends, ink), Shape(ends, (at, at), ink)]
        self._boundary.shapes = lines
        self.frame.set_scales(across, up)

    def show_again(self) -> None:
        self.image.setColorMap(attention_map(self.colours))
        self.draw_section()

    # --- Reading -----------------------------------------------------------------------------------------------------
    def cursor_text(self) -> str:
        return self.summary

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        area = self.frame.area
        if not area.contains(place):
            return None
        key = self.frame.across.at((place.x() - area.left()) / area.width())
        query = self.frame.up.at((area.bottom() - place.y()) / area.height())
        rows, columns = self._weights.shape
        row, column = int(query / self.extent * rows), int(key / self.extent * columns)
        weight = self._weights[min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)]
        return f"Query {general(query, 4)}, key {general(key, 4)} ({self._unit}): {general(weight, 3)}", QRectF(
            self.rect()
        )

    def as_text(self) -> str:
        rows, columns = self._weights.shape
        down, right = ((np.arange(count) + 0.5) * self.extent / count for count in (rows, columns))
        lines = ["\t".join([f"query \\ key, {self._unit}", *(f"{one:.4g}" for one in right.tolist())])]
        for place, row in zip(down.tolist(), self._weights.tolist(), strict=True):
            lines.append("\t".join([f"{place:.4g}", *(f"{one:.4g}" for one in row)]))
        return "\n".join(lines)

    # --- Mouse and keys ----------------------------------------------------------------------------------------------
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self.begins_move(event, anywhere=True):
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self.goes_on_moving(event):
            self.show_shape(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self.ends_move(event):
            super().mouseReleaseEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.show_everything()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key in _MOVES and not event.modifiers() & ~self.own_modifiers:
            self.move_section(*_MOVES[key])
        else:
            super().keyPressEvent(event)
