"""From where on a difference is heard: a line across the trade-off plot, and a band for its 95 % interval, or for all
marks of a listener who walked along the front."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from paretone.listening.results import HeardFrom
from paretone_app.features.tradeoff.model.limits import Limit
from paretone_app.plotting.frame import pen
from paretone_app.plotting.layers import Layer

_OPACITY = 0.12


class HeardBands(Layer):
    """One for each staircase, on an X axis of speed-ups, and one for the method of limits, whose line is dotted."""

    heard: Sequence[HeardFrom] = ()
    limit: Limit | None = None

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

        if self.limit is not None:
            self._draw_limit(painter, self.limit)

    def _draw_limit(self, painter: QPainter, limit: Limit) -> None:
        area, colour = self.frame.area, QColor(self.frame.colours.muted)
        low, at, high = map(self._x, (limit.low, limit.value, limit.high))
        painter.setPen(pen(colour, 1.6, Qt.PenStyle.DotLine))
        painter.drawLine(QLineF(at, area.top(), at, area.bottom()))
        colour.setAlphaF(_OPACITY)
        painter.fillRect(QRectF(low, area.top(), high - low, area.height()), colour)

    def _x(self, value: float) -> float:
        return float(self.frame.to_x(value))
