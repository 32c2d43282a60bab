"""A colour bar: what the colours of a map mean."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from paretone_app.numbers import general
from paretone_app.shell.colours import Colours
from paretone_app.widgets.screen_readers import PICTURE


class ColourBar(QWidget):
    """Colour bar of a map: a gradient with labelled ends and middle."""

    screen_role = PICTURE

    def __init__(self, name: str, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._gradient = QImage()
        self._ends: tuple[float, float] | None = None
        self._logarithmic = False
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        height = self.fontMetrics().height()
        return QSize(height * 10, int(height * 1.9))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().height() * 8, self.sizeHint().height())

    def set_map(self, chosen: pg.ColorMap, colours: Colours) -> None:
        """Colour map and theme."""
        self._colours = colours
        row = np.ascontiguousarray(chosen.getLookupTable(nPts=256, alpha=True), np.uint8)
        self._gradient = QImage(row.tobytes(), 256, 1, 1024, QImage.Format.Format_RGBA8888).copy()
        self.update()

    def set_ends(self, ends: tuple[float, float] | None, logarithmic: bool = False) -> None:
        """Values at both ends; ``None`` while nothing is shown."""
        self._ends, self._logarithmic = ends, logarithmic
        self.setAccessibleDescription("" if ends is None else f"From {general(ends[0], 3)} to {general(ends[1], 3)}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._ends is None:
            return
        with QPainter(self) as painter:
            height = self.fontMetrics().height()
            bar = QRectF(0.5, 0.5, self.width() - 1, height * 0.7)
            painter.drawImage(bar, self._gradient)
            painter.setPen(QColor(self._colours.border))
            painter.drawRect(bar)
            painter.setPen(QColor(self._colours.muted))
            low, high = self._ends
            middle = float(np.sqrt(low * high)) if self._logarithmic and low > 0 else (low + high) / 2
            box = QRectF(0, bar.bottom() + 1, self.width(), height)
            sides = (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight)
            texts = [general(value, 2) for value in (low, middle, high)]
            if self.fontMetrics().horizontalAdvance("    ".join(texts)) > self.width():
                texts[1] = ""
            for side, text in zip(sides, texts, strict=True):
                painter.drawText(box, side, text)
