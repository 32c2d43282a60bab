"""The cells of a heat map as rectangles: they stay crisp on paper, where pictures are smoothed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPicture
from PySide6.QtWidgets import QGraphicsObject, QStyleOptionGraphicsItem, QWidget

_OVERLAP = 0.01
"""Share of a cell by which neighbours overlap, so that no seam shows."""


class Cells(QGraphicsObject):
    """Equal cells around columns and rows; values that are not finite are left out."""

    def __init__(self) -> None:
        super().__init__()
        self._bounds = QRectF()
        self._picture = QPicture()

    def show_cells(
        self,
        columns: Sequence[float],
        rows: Sequence[float],
        values: Sequence[Sequence[float]],
        colour: Callable[[float], QColor],
    ) -> QRectF:
        """Draw these; gives their bounds."""
        self.prepareGeometryChange()
        across, down = _step(columns), _step(rows)
        self._bounds = QRectF(columns[0] - across / 2, rows[0] - down / 2, across * len(columns), down * len(rows))
        self._picture = QPicture()
        with QPainter(self._picture) as painter:
            for y, row in zip(rows, values, strict=True):
                for x, value in zip(columns, row, strict=True):
                    if math.isfinite(value):
                        cell = QRectF(x - across / 2, y - down / 2, across * (1 + _OVERLAP), down * (1 + _OVERLAP))
                        painter.fillRect(cell.intersected(self._bounds), colour(value))
        self.update()
        return self._bounds

    def boundingRect(self) -> QRectF:
        return self._bounds

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self._picture.play(painter)


def _step(places: Sequence[float]) -> float:
    return (places[-1] - places[0]) / (len(places) - 1) if len(places) > 1 else 1.0
