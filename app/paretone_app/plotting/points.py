"""Layers of points: glyphs, intervals, and the rings and badges of chosen points."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap, QPolygonF

from paretone.figures.glyphs import DOTTED, HOLLOW, Glyph, corners
from paretone_app.plotting.frame import Frame, Layer, StaticLayers
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import text_font

_DOTTED_ALPHA, _HOLLOW_ALPHA = 210, 60


def paint_glyph(painter: QPainter, place: QPointF, radius: float, glyph: Glyph, colours: Colours) -> None:
    path, around = QPainterPath(), corners(glyph.shape)
    if around:
        path.addPolygon(QPolygonF([QPointF(place.x() + radius * x, place.y() - radius * y) for x, y in around]))
        path.closeSubpath()
    else:
        path.addEllipse(place, radius, radius)
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
        # Outline in the background colour, to separate neighbours.
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.base), 1.2))
        painter.drawPath(path)
    painter.restore()


_FAINT = 110
"""Alpha of interval lines."""
_HIDDEN = 1.6
"""In radii of a point: shorter intervals are hidden by the point."""


class Points(Layer):
    """Points with their glyphs; ``order`` gives the drawn ones, lowest first, of which the first ``dim`` are dimmed."""

    def __init__(self, frame: Frame, z: float, still: StaticLayers | None = None) -> None:
        super().__init__(frame, z, still, overhang=1.0)
        self.across = self.up = np.empty(0)
        self.glyphs: Sequence[Glyph] = ()
        self.radius: np.ndarray | float = 1.0
        """In pixels, per point or for all."""
        self.order: np.ndarray = np.empty(0, int)
        self.dim = 0
        self.doubtful: frozenset[int] = frozenset()
        """Points with a dashed ring."""
        self._sprites: dict[tuple[Glyph, float, float, Colours], QPixmap] = {}

    def draw(self, painter: QPainter) -> None:
        x, y = self.frame.to_x(self.across), self.frame.to_y(self.up)
        radii = np.broadcast_to(self.radius, x.shape)
        inside = self.frame.area.adjusted(-1, -1, 1, 1)
        seen = (x >= inside.left()) & (x <= inside.right()) & (y >= inside.top()) & (y <= inside.bottom())
        order, dim = self.order[seen[self.order]], int(seen[self.order[: self.dim]].sum())
        colours, ratio = self.frame.colours, painter.device().devicePixelRatioF()
        known: dict[tuple[int, float], tuple[QPixmap, float]] = {}
        places = list(zip(order.tolist(), x[order].tolist(), y[order].tolist(), radii[order].tolist(), strict=True))
        if dim:
            painter.setOpacity(0.22)
        for number, (index, left, top, radius) in enumerate(places):
            if number == dim:
                painter.setOpacity(1.0)
            glyph = self.glyphs[index]
            if self.frame.on_paper:
                paint_glyph(painter, QPointF(left, top), radius, glyph, colours)
                continue
            key = id(glyph), radius
            if key not in known:
                drawn = self._sprite(glyph, radius, ratio)
                known[key] = drawn, drawn.deviceIndependentSize().width() / 2
            picture, half = known[key]
            painter.drawPixmap(QPointF(left - half, top - half), picture)
        painter.setOpacity(1.0)
        if not self.doubtful:
            return
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.warning), 1.3, Qt.PenStyle.DashLine))
        for index, left, top, radius in places:
            if index in self.doubtful:
                painter.drawEllipse(QPointF(left, top), radius + 2.5, radius + 2.5)

    def _sprite(self, glyph: Glyph, radius: float, ratio: float) -> QPixmap:
        """The glyph as a picture for a screen of this pixel ratio, centred on the point."""
        key = glyph, radius, ratio, self.frame.colours
        if key not in self._sprites:
            if len(self._sprites) > 500:
                self._sprites.clear()
            side = 2 * math.ceil(1.5 * radius + 2)
            self._sprites[key] = drawn = QPixmap(round(side * ratio), round(side * ratio))
            drawn.setDevicePixelRatio(ratio)
            drawn.fill(Qt.GlobalColor.transparent)
            with QPainter(drawn) as painter:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                paint_glyph(painter, QPointF(side / 2, side / 2), radius, glyph, self.frame.colours)
        return self._sprites[key]


class Whiskers(Layer):
    """Intervals along both axes, each in its colour, except those hidden by their point."""

    def __init__(self, frame: Frame, z: float, still: StaticLayers | None = None) -> None:
        super().__init__(frame, z, still)
        self.across = self.up = np.empty((0, 3))
        """(n, 3) each: value, low end, high end."""
        self.colours: Sequence[str] = ()
        self.hidden = 0.0

    @property
    def lines(self) -> tuple[np.ndarray, np.ndarray]:
        """The drawn lines: the point of each, and (n, 4): left, top, right and bottom end in pixels."""
        x, y = self.frame.to_x(self.across), self.frame.to_y(self.up)
        area = self.frame.area
        seen = (
            (x[:, 2] >= area.left()) & (x[:, 1] <= area.right()) & (y[:, 1] >= area.top()) & (y[:, 2] <= area.bottom())
        )
        wide = np.flatnonzero(seen & (x[:, 2] - x[:, 1] > _HIDDEN * self.hidden))
        high = np.flatnonzero(seen & (y[:, 1] - y[:, 2] > _HIDDEN * self.hidden))
        across = np.c_[x[wide, 1], y[wide, 0], x[wide, 2], y[wide, 0]]
        return np.r_[wide, high], np.r_[across, np.c_[x[high, 0], y[high, 2], x[high, 0], y[high, 1]]]

    def draw(self, painter: QPainter) -> None:
        index, ends = self.lines
        known = {name: number for number, name in enumerate(dict.fromkeys(self.colours))}
        numbers = np.array([known[name] for name in self.colours], int)[index]
        for name, number in known.items():
            colour = QColor(name)
            colour.setAlpha(_FAINT)
            painter.setPen(QPen(colour, 1.2))
            own = np.flatnonzero(numbers == number)
            # One by one: thousands of live lines at once would trigger Python's collector.
            for line in ends[own].tolist():
                painter.drawLine(QLineF(*line))


@dataclass(frozen=True)
class IntervalMark:
    place: float
    low: float
    high: float
    colour: str = ""
    """The text colour if empty."""


class Beams(Layer):
    """Vertical intervals with caps, outlined to stand out from bar and background."""

    def __init__(self, frame: Frame, z: float) -> None:
        super().__init__(frame, z)
        self.intervals: Sequence[IntervalMark] = ()
        self.beam = 5.0
        """Half the width of a cap, in pixels."""

    def draw(self, painter: QPainter) -> None:
        colours = self.frame.colours
        for one in self.intervals:
            ends = self.frame.place(one.place, one.low), self.frame.place(one.place, one.high)
            across = QPointF(self.beam, 0)
            for ink, width in ((colours.base, 3.6), (one.colour or colours.text, 1.6)):
                painter.setPen(QPen(QColor(ink), width))
                painter.drawLine(*ends)
                for end in ends:
                    painter.drawLine(end - across, end + across)


class Rings(Layer):
    clipped = False

    def __init__(self, frame: Frame, z: float) -> None:
        super().__init__(frame, z)
        self.rings: Sequence[tuple[QPointF, float]] = ()
        self.pen = QPen()

    def show_rings(self, rings: Sequence[tuple[QPointF, float]], pen: QPen) -> None:
        if (list(rings), pen) != (list(self.rings), self.pen):
            # Redraw only the old and new rings: thousands of points may lie below.
            self.prepareGeometryChange()
            self.rings, self.pen = rings, pen
            self.update()

    def boundingRect(self) -> QRectF:
        found = QRectF()
        for middle, radius in self.rings:
            room = radius + self.pen.widthF()
            found |= QRectF(middle.x() - room, middle.y() - room, 2 * room, 2 * room)
        return found

    def draw(self, painter: QPainter) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(self.pen)
        for middle, radius in self.rings:
            painter.drawEllipse(middle, radius, radius)


@dataclass(frozen=True)
class Badge:
    text: str
    fill: str
    place: QPointF


class Badges(Layer):
    """Badges of points, at the upper right, or on the other side if space is short."""

    clipped = False

    def __init__(self, frame: Frame, z: float) -> None:
        super().__init__(frame, z)
        self.badges: Callable[[], Sequence[Badge]] = tuple
        self.radius = 0.0

    def draw(self, painter: QPainter) -> None:
        font = text_font(self.frame.font(), strong=True)
        painter.setFont(font)
        metrics, em = QFontMetricsF(font), self.frame.em
        height, away = 1.05 * em, 0.7 * self.radius
        for one in self.badges():
            width = metrics.horizontalAdvance(one.text) + 0.5 * em
            left, top = one.place.x() + away, one.place.y() - self.radius - height
            if left + width > self.frame.area.right():
                left = one.place.x() - away - width
            if top < 0:
                top = one.place.y() + self.radius
            spot = QRectF(left, top, width, height)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(one.fill))
            painter.drawRoundedRect(spot, 3, 3)
            painter.setPen(QColor(self.frame.colours.base))
            painter.drawText(spot, Qt.AlignmentFlag.AlignCenter, one.text)
