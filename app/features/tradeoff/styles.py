"""What points of the trade-off view look like: a colour and a shape for each technique, both halves of a point that
engages two; settings of studies filled, single takes hollow, published results dashed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap, QPolygonF

from app.features.tradeoff.points import PUBLISHED, TAKE
from app.plotting.palette import SERIES_DARK, SERIES_LIGHT
from app.shell.theme import DARK, Colours

_MORE_LIGHT = ("#5b4bc4", "#a81f2d")
_MORE_DARK = ("#b3a6ff", "#ff8d95")
_SHAPES = ("circle", "square", "triangle", "diamond", "hexagon", "down")
"""As many as share no factor with the colours, so that no two of 42 techniques look alike."""
_BASELINE = "star"
_CORNERS = {
    "square": (4, math.pi / 4, 1.18),
    "triangle": (3, math.pi / 2, 1.3),
    "down": (3, -math.pi / 2, 1.3),
    "diamond": (4, 0.0, 1.28),
    "hexagon": (6, 0.0, 1.1),
}
"""Number of corners, the angle of the first, and how far out they are, so that all shapes look equally large."""
_STAR_INNER = 0.45
GHOST_ALPHA = 210


@dataclass(frozen=True)
class Glyph:
    """How a point is drawn."""

    colours: tuple[str, ...]
    """One for each technique, the first on the left."""
    shape: str
    kind: str


class Looks:
    """Colours and shapes of the techniques that there are."""

    def __init__(self, techniques: Sequence[str], colours: Colours) -> None:
        self.colours = colours
        palette = (*SERIES_DARK, *_MORE_DARK) if colours == DARK else (*SERIES_LIGHT, *_MORE_LIGHT)
        self._known = {
            name: (palette[place % len(palette)], _SHAPES[place % len(_SHAPES)])
            for place, name in enumerate(techniques)
        }
        self._glyphs: dict[tuple[tuple[str, ...], str], Glyph] = {}
        self._sprites: dict[tuple[Glyph, float, float], QPixmap] = {}

    def glyph(self, techniques: tuple[str, ...], kind: str) -> Glyph:
        """Of a point that engages ``techniques``; one and the same object for all of them."""
        found = self._glyphs.get((techniques, kind))
        if found is None:
            found = Glyph((self.colours.text,), _BASELINE, kind)
            if techniques:
                colours = tuple(self._known[name][0] for name in techniques)
                found = Glyph(colours, self._known[techniques[0]][1], kind)
            self._glyphs[techniques, kind] = found
        return found

    def sprite(self, glyph: Glyph, radius: float, ratio: float) -> QPixmap:
        """The glyph as a picture for a screen of this pixel ratio; its middle is the point."""
        key = glyph, radius, ratio
        if key not in self._sprites:
            side = 2 * math.ceil(1.5 * radius + 2)
            drawn = QPixmap(round(side * ratio), round(side * ratio))
            drawn.setDevicePixelRatio(ratio)
            drawn.fill(Qt.GlobalColor.transparent)
            painter = QPainter(drawn)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            paint_glyph(painter, QPointF(side / 2, side / 2), radius, glyph, self.colours)
            painter.end()
            self._sprites[key] = drawn
        return self._sprites[key]


def paint_glyph(painter: QPainter, place: QPointF, radius: float, glyph: Glyph, colours: Colours) -> None:
    """Draw a point around ``place``."""
    path = _path(glyph.shape, place, radius)
    if glyph.kind == PUBLISHED:
        colour = QColor(glyph.colours[0])
        colour.setAlpha(GHOST_ALPHA)
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
        if glyph.kind == TAKE:
            colour.setAlpha(60)
        painter.fillPath(part, colour)
        if glyph.kind == TAKE:
            painter.save()
            painter.setClipPath(part)
            painter.setPen(QPen(QColor(name), 3.0))
            painter.drawPath(path)
            painter.restore()
    if glyph.kind != TAKE:
        # The colour of the ground sets neighbours apart.
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.base), 1.2))
        painter.drawPath(path)
    painter.restore()


def _path(shape: str, place: QPointF, radius: float) -> QPainterPath:
    path = QPainterPath()
    if shape == "circle":
        path.addEllipse(place, radius, radius)
        return path
    if shape == _BASELINE:
        ends = [(1.35 * radius if turn % 2 == 0 else _STAR_INNER * 1.35 * radius, turn * 36) for turn in range(10)]
        corners = [_around(place, far, math.radians(90 + turn)) for far, turn in ends]
    else:
        count, first, far = _CORNERS[shape]
        corners = [_around(place, far * radius, first + turn * 2 * math.pi / count) for turn in range(count)]
    path.addPolygon(QPolygonF(corners))
    path.closeSubpath()
    return path


def _around(place: QPointF, far: float, angle: float) -> QPointF:
    return QPointF(place.x() + far * math.cos(angle), place.y() - far * math.sin(angle))
