"""From where on a difference is heard: a line across the trade-off plot, and a band for its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from app.plotting.frame import pen
from app.plotting.layers import Layer
from engine.listening.results import HeardFrom

_OPACITY = 0.12


class HeardBands(Layer):
    """One for each staircase, on an X axis of speed-ups."""

    heard: Sequence[HeardFrom] = ()

    def draw(self, painter: QPainter) -> None:
        area, colour = self.frame.area, QColor(self.frame.colours.accelerated)
        shade = QColor(colour)
        shade.setAlphaF(_OPACITY)
        for one in self.heard:
            left = area.left() if one.low == 0.0 else self._x(one.low)
            right = area.right() if math.isinf(one.high) else self._x(one.high)
            painter.fillRect(QRectF(left, area.top(), right - left, area.height()), shade)
            if 0.0 < one.value < math.inf:
                painter.setPen(pen(colour, 1.6, Qt.PenStyle.DashLine))
                painter.drawLine(QLineF(self._x(one.value), area.top(), self._x(one.value), area.bottom()))

    def _x(self, speed_up: float) -> float:
        return float(self.frame.to_x(speed_up))
