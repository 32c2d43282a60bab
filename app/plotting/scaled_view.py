"""A pyqtgraph view that draws its plots smaller where they would not fit, instead of cutting them off."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QResizeEvent


class ScaledView(pg.GraphicsLayoutWidget):
    """Draws at its own size from ``needed`` on; below that, everything in it shrinks, letters too."""

    _needed = QSizeF(0, 0)

    def set_needed(self, size: QSizeF) -> None:
        """The least size, in pixels, at which everything stands as it should."""
        self._needed = size
        self.resizeEvent(None)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        width, height = max(self.width(), 1), max(self.height(), 1)
        shrunk = max(self._needed.width() / width, self._needed.height() / height, 1.0)
        # The scene that is seen; pyqtgraph fits it into the view.
        self.autoPixelRange = shrunk == 1.0
        self.range = QRectF(0, 0, width * shrunk, height * shrunk)
        super().resizeEvent(event)
