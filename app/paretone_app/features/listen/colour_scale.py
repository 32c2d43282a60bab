"""Colour scale of a spectrogram."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import SMALL, text_font
from paretone_app.widgets.screen_readers import PICTURE


class ColourScale(QWidget):
    """A thin strip that says what the colours mean."""

    screen_role = PICTURE

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._texts = ("", "", "")
        self._colours = _colours_of(pg.colormap.get("magma"))
        self._text = QColor()
        metrics = self.fontMetrics()
        self._strip = max(6, metrics.height() // 2)
        self.setFixedWidth(self._strip + 4 + metrics.horizontalAdvance("−70 "))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Ignored)

    def set_map(self, colours: pg.ColorMap, theme: Colours) -> None:
        self._colours, self._text = _colours_of(colours), QColor(theme.muted)
        self.update()

    def set_ends(self, top: str, unit: str, bottom: str) -> None:
        self._texts = (top, unit, bottom)
        self.setAccessibleDescription(f"{bottom} to {top} {unit}")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            gradient = QLinearGradient(0, self.height(), 0, 0)
            gradient.setStops(self._colours)
            painter.fillRect(0, 0, self._strip, self.height(), gradient)
            painter.setPen(self._text)
            painter.setFont(text_font(painter.font(), SMALL))
            area = self.rect().adjusted(self._strip + 3, 0, 0, 0)
            across = (Qt.AlignmentFlag.AlignTop, Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignBottom)
            for text, where in zip(self._texts, across, strict=True):
                if where is Qt.AlignmentFlag.AlignVCenter and self.height() < 3 * painter.fontMetrics().height():
                    continue
                painter.drawText(area, where | Qt.AlignmentFlag.AlignLeft, text)


def _colours_of(colours: pg.ColorMap) -> list[tuple[float, QColor]]:
    """Some of the map's colours, from its lower end (0) to its upper one (1)."""
    shares = np.linspace(0, 1, 24)
    return list(zip(shares.tolist(), colours.map(shares, mode="qcolor"), strict=True))
