"""A pyqtgraph view that draws its plots smaller where they would not fit, instead of cutting them off."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QResizeEvent


class ScaledView(pg.GraphicsView):
    """Draws at its own size from ``needed`` on, in pixels; below that, everything in it shrinks, letters too."""

    needed = QSizeF(0, 0)

    def fit(self) -> QRectF:
        """Take the size that there is; gives the part of the scene that is seen, which pyqtgraph fits into the view."""
        width, height = max(self.width(), 1), max(self.height(), 1)
        shrunk = max(self.needed.width() / width, self.needed.height() / height, 1.0)
        self.autoPixelRange = shrunk == 1.0
        self.range = QRectF(0, 0, width * shrunk, height * shrunk)
        return self.range

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        self.fit()
        super().resizeEvent(event)
