"""Painting the marks of points: filled, hollow, or dotted, in one colour or in slices of several."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap, QPolygonF

from paretone.figures.glyphs import DOTTED, HOLLOW, Glyph, corners
from paretone_app.shell.colours import Colours

_DOTTED_ALPHA, _HOLLOW_ALPHA = 210, 60


def paint_glyph(painter: QPainter, place: QPointF, radius: float, glyph: Glyph, colours: Colours) -> None:
    """Draw a point around ``place``."""
    path = _path(glyph.shape, place, radius)
    if glyph.look == DOTTED:
        colour = QColor(glyph.colours[0])
        colour.setAlpha(_DOTTED_ALPHA)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour, 1.5, Qt.PenStyle.DotLine))
        painter.drawPath(path)
        return
    painter.save()
    painter.setPen(Qt.PenStyle.NoPen)
    share = 2.8 * radius / len(glyph.colours)
    for number, name in enumerate(glyph.colours):
        part = path
        if len(glyph.colours) > 1:
            left = place.x() - 1.4 * radius + number * share
            slab = QPainterPath()
            slab.addRect(QRectF(left, place.y() - 2 * radius, share, 4 * radius))
            part = path.intersected(slab)
        colour = QColor(name)
        if glyph.look == HOLLOW:
            colour.setAlpha(_HOLLOW_ALPHA)
        painter.fillPath(part, colour)
        if glyph.look == HOLLOW:
            painter.save()
            painter.setClipPath(part)
            painter.setPen(QPen(QColor(name), 3.0))
            painter.drawPath(path)
            painter.restore()
    if glyph.look != HOLLOW:
        # The colour of the ground sets neighbours apart.
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.base), 1.2))
        painter.drawPath(path)
    painter.restore()


def sprite(glyph: Glyph, radius: float, ratio: float, colours: Colours) -> QPixmap:
    """The glyph as a picture for a screen of this pixel ratio; its middle is the point."""
    side = 2 * math.ceil(1.5 * radius + 2)
    drawn = QPixmap(round(side * ratio), round(side * ratio))
    drawn.setDevicePixelRatio(ratio)
    drawn.fill(Qt.GlobalColor.transparent)
    with QPainter(drawn) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_glyph(painter, QPointF(side / 2, side / 2), radius, glyph, colours)
    return drawn


def _path(shape: str, place: QPointF, radius: float) -> QPainterPath:
    path = QPainterPath()
    around = corners(shape)
    if around:
        path.addPolygon(QPolygonF([QPointF(place.x() + radius * x, place.y() - radius * y) for x, y in around]))
        path.closeSubpath()
    else:
        path.addEllipse(place, radius, radius)
    return path
