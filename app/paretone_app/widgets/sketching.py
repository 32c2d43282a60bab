"""Faint sketches of future content for empty views, in the colours of the palette."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPalette, QPen, QPolygonF


@dataclass(frozen=True)
class Ink:
    """Faint colours of a sketch."""

    line: QColor
    fill: QColor
    accent: QColor


Sketch = Callable[[QPainter, QRectF, Ink], None]
"""Draws into a rectangle."""
Given = ParamSpec("Given")


def _sketch(draw: Callable[Concatenate[QPainter, QRectF, Ink, Given], None]) -> Callable[Given, Sketch]:
    """Have the function take its further arguments first, and return the :data:`Sketch` with these."""

    def given(*arguments: Given.args, **named: Given.kwargs) -> Sketch:
        return lambda painter, area, inks: draw(painter, area, inks, *arguments, **named)

    return given


def ink(palette: QPalette) -> Ink:

    def faint(role: QPalette.ColorRole, alpha: int) -> QColor:
        colour = QColor(palette.color(QPalette.ColorGroup.Active, role))
        colour.setAlpha(alpha)
        return colour

    text, accent = QPalette.ColorRole.WindowText, QPalette.ColorRole.Accent
    return Ink(faint(text, 60), faint(text, 22), faint(accent, 55))


@_sketch
def cells(painter: QPainter, area: QRectF, inks: Ink, rows: int, columns: int) -> None:
    """A table of layers and steps with some skipped cells."""
    width, height = area.width() / columns, area.height() / rows
    for row in range(rows):
        for column in range(columns):
            skipped = column > 0 and (row * 7 + column * 5) % 11 < 2 + 5 * column // columns
            place = QRectF(area.left() + column * width, area.top() + row * height, width - 2, height - 2)
            painter.fillRect(place, inks.accent if skipped else inks.fill)


@_sketch
def histogram(painter: QPainter, area: QRectF, inks: Ink) -> None:
    """Histogram of measured errors, with the draggable threshold."""
    inside = _axes(painter, area, inks)
    count = 28
    width = inside.width() / count
    for index in range(count):
        share = math.exp(-(((index - 5) / 5.5) ** 2)) * (0.85 + 0.15 * math.cos(2.4 * index))
        top = inside.bottom() - share * inside.height() * 0.9
        painter.fillRect(QRectF(inside.left() + index * width, top, width - 2, inside.bottom() - top), inks.fill)
    painter.setPen(QPen(inks.accent, 3))
    x = inside.left() + 0.3 * inside.width()
    painter.drawLine(QPointF(x, inside.top()), QPointF(x, inside.bottom()))


@_sketch
def curves(painter: QPainter, area: QRectF, inks: Ink, *rates: float) -> None:
    """One exponential curve per rate: falling, or rising for a negative rate."""
    inside = _axes(painter, area, inks)
    for number, rate in enumerate(rates):
        heights = [math.exp(-abs(rate) * place / 40) for place in range(41)]
        painter.setPen(QPen(inks.accent if not number else inks.line, 2.5))
        painter.drawPolyline(_spread([1 - one if rate < 0 else one for one in heights], inside))


@_sketch
def front(painter: QPainter, area: QRectF, inks: Ink) -> None:
    """Points, and the Pareto front."""
    inside = _axes(painter, area, inks)
    best = [(place / 7, 1 - (place / 7) ** 2.2) for place in range(1, 8)]
    painter.setPen(QPen(inks.accent, 2.5))
    painter.drawPolyline(QPolygonF([_point(inside, x, 0.1 + 0.8 * y) for x, y in best]))
    for index, (x, y) in enumerate(best):
        _dot(painter, _point(inside, x, 0.1 + 0.8 * y), inks.accent)
        for echo in (1, 2):
            _dot(painter, _point(inside, x - 0.07 * echo, (0.1 + 0.8 * y) * (0.9 - 0.17 * echo)), inks.fill)
        if index % 2:
            _dot(painter, _point(inside, x - 0.04, 0.55 * y), inks.line)


@_sketch
def waves(painter: QPainter, area: QRectF, inks: Ink, count: int) -> None:
    """Waveforms, one below the other."""
    height = area.height() / count
    for number in range(count):
        middle = area.top() + (number + 0.5) * height
        painter.setPen(QPen(inks.accent if not number else inks.line, 2))
        for column in range(int(area.width() / 4)):
            loud = abs(math.sin(column / 9)) * abs(math.sin(column / 47 + number))
            half = max(1.0, 0.38 * height * loud)
            x = area.left() + 4 * column
            painter.drawLine(QPointF(x, middle - half), QPointF(x, middle + half))


@_sketch
def rows(painter: QPainter, area: QRectF, inks: Ink, columns: Sequence[float]) -> None:
    """A table with columns of these widths, as shares of the total."""
    height = 26.0
    for row in range(int(area.height() / height)):
        x = area.left()
        for column, share in enumerate(columns):
            width = share * area.width()
            filled = width * (0.55 + 0.3 * abs(math.sin(3 * row + column)))
            place = QRectF(x, area.top() + row * height + 7, filled, height - 15)
            painter.fillRect(place, inks.line if not row else inks.accent if not column else inks.fill)
            x += width


@_sketch
def tokens(painter: QPainter, area: QRectF, inks: Ink) -> None:
    """Tokens along a line of speech: most are drafted and accepted."""
    height, width = 30.0, 18.0
    for line in range(max(1, int(area.height() / (height + 16)))):
        for index in range(int(area.width() / width)):
            kind = (index * 7 + line * 3) % 9
            colour = inks.accent if kind < 6 else inks.line if kind == 6 else inks.fill
            place = QRectF(area.left() + index * width, area.top() + line * (height + 16), width - 3, height)
            painter.fillRect(place, colour)


@_sketch
def bars(painter: QPainter, area: QRectF, inks: Ink, count: int) -> None:
    """Bars side by side, each with a highlighted part."""
    inside = _axes(painter, area, inks)
    width = inside.width() / count
    for index in range(count):
        share = 0.3 + 0.6 * abs(math.sin(1.7 * index + 0.6))
        left, full = inside.left() + (index + 0.2) * width, share * inside.height()
        painter.fillRect(QRectF(left, inside.bottom() - full, 0.6 * width, full), inks.fill)
        part = full * (0.35 + 0.4 * abs(math.cos(index)))
        painter.fillRect(QRectF(left, inside.bottom() - part, 0.6 * width, part), inks.accent)


@_sketch
def diagonal(painter: QPainter, area: QRectF, inks: Ink) -> None:
    """An attention map."""
    count = 24
    side = min(area.width(), area.height())
    left, top = area.center().x() - side / 2, area.center().y() - side / 2
    step = side / count
    for row in range(count):
        for column in range(count):
            near = abs(row - column) < 2 or (abs(row - column - 8) < 1 and row % 3 == 0)
            place = QRectF(left + column * step, top + row * step, step - 1, step - 1)
            painter.fillRect(place, inks.accent if near else inks.fill)


def _axes(painter: QPainter, area: QRectF, inks: Ink) -> QRectF:
    """Draw two axes; returns the area between them."""
    inside = area.adjusted(28, 4, -4, -24)
    path = QPainterPath(inside.topLeft())
    path.lineTo(inside.bottomLeft())
    path.lineTo(inside.bottomRight())
    painter.setPen(QPen(inks.line, 1.5))
    painter.drawPath(path)
    return inside


def _point(area: QRectF, x: float, y: float) -> QPointF:
    return QPointF(area.left() + x * area.width(), area.bottom() - y * area.height())


def _spread(heights: Sequence[float], area: QRectF) -> QPolygonF:
    last = len(heights) - 1
    return QPolygonF([_point(area, index / last, 0.05 + 0.85 * one) for index, one in enumerate(heights)])


def _dot(painter: QPainter, place: QPointF, colour: QColor) -> None:
    path = QPainterPath()
    path.addEllipse(place, 5, 5)
    painter.fillPath(path, colour)
