"""What is drawn over a frame, layer by layer: shapes, blocks, intervals, points, words and rings, given in figures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QGraphicsObject, QWidget

from app.plotting.frame import Frame
from app.plotting.glyphs import paint_glyph, sprite
from app.shell.theme import Colours
from engine.figures.glyphs import Glyph

_DIM = 0.22
_SPRITES = 500
"""Pictures of points that are kept at most."""
_FAINT = 110
"""Alpha of an interval's line."""
_HIDDEN = 1.6
"""In radii of a point: an interval that is shorter lies hidden beneath it."""


class Layer(QGraphicsObject):
    """Drawn again whenever its frame changes."""

    clipped = True
    """Whether nothing of it is seen beyond the view."""

    def __init__(self, frame: Frame, z: float, still: Still | None = None, overhang: float = 0.0) -> None:
        """``still`` draws the layer with others at once, if given. ``overhang``: how far it may reach beyond the view
        if it is clipped, in heights of the font."""
        super().__init__(frame)
        self.frame, self._still, self._overhang = frame, still, overhang
        self._bounds = frame.rect()
        self.setZValue(z)
        if still is not None:
            still.layers.append(self)
            self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents)
        frame.changed.connect(self._frame_changed)

    def _frame_changed(self) -> None:
        # A scene must hear of other bounds before they are so.
        self.prepareGeometryChange()
        self._bounds = self.frame.rect()
        self.redraw()

    def redraw(self) -> None:
        """Something else is to be drawn."""
        if self._still is not None:
            self._still.redraw()
        else:
            self.update()

    def boundingRect(self) -> QRectF:
        return self._bounds

    def paint(self, painter: QPainter, _option: object, _widget: QWidget | None = None) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self.frame.font())
        if self.clipped:
            room = self._overhang * self.frame.em
            painter.setClipRect(self.frame.area.adjusted(-room, -room, room, room), Qt.ClipOperation.IntersectClip)
        self.draw(painter)

    def draw(self, painter: QPainter) -> None:
        """Draw it, in pixels of the frame."""
        raise NotImplementedError


class Still(Layer):
    """Layers that are drawn at once and kept as a picture, so that what moves above them costs little: the lowest
    first. On paper they stay shapes."""

    clipped = False

    def __init__(self, frame: Frame, z: float) -> None:
        self.layers: list[Layer] = []
        self._picture: QPixmap | None = None
        super().__init__(frame, z)

    def redraw(self) -> None:
        self._picture = None
        super().redraw()

    def draw(self, painter: QPainter) -> None:
        if self.frame.on_paper:
            self._draw_layers(painter)
            return
        ratio = painter.device().devicePixelRatioF()
        if self._picture is None or self._picture.devicePixelRatio() != ratio:
            self._picture = QPixmap((self.frame.rect().size() * ratio).toSize())
            self._picture.setDevicePixelRatio(ratio)
            self._picture.fill(Qt.GlobalColor.transparent)
            drawing = QPainter(self._picture)
            self._draw_layers(drawing)
            drawing.end()
        painter.drawPixmap(0, 0, self._picture)

    def _draw_layers(self, painter: QPainter) -> None:
        for layer in self.layers:
            if layer.isVisible():
                painter.save()
                layer.paint(painter, None)
                painter.restore()


# --- Shapes -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Shape:
    """A line through corners in figures, or the surface that they enclose."""

    x: ArrayLike
    y: ArrayLike
    pen: QPen | None = None
    fill: QBrush | None = None

    @classmethod
    def through(
        cls, corners: Sequence[tuple[float, float]], pen: QPen | None = None, fill: QBrush | None = None
    ) -> Shape:
        """Of corners rather than of their coordinates."""
        return cls([x for x, _ in corners], [y for _, y in corners], pen, fill)


class Shapes(Layer):
    """Lines and surfaces."""

    shapes: Sequence[Shape] = ()

    def draw(self, painter: QPainter) -> None:
        for one in self.shapes:
            corners = np.c_[self.frame.to_x(one.x), self.frame.to_y(one.y)]
            polygon = QPolygonF([QPointF(x, y) for x, y in corners.tolist()])
            painter.setPen(one.pen or Qt.PenStyle.NoPen)
            if one.fill is not None:
                painter.setBrush(one.fill)
                painter.drawPolygon(polygon)
            else:
                painter.drawPolyline(polygon)


@dataclass(frozen=True)
class Block:
    """An upright rectangle between figures."""

    x: tuple[float, float]
    y: tuple[float, float]
    fill: QBrush | QColor
    outline: QPen | None = None


class Blocks(Layer):
    """Bars, in pixels, so that hatches stay even; each at least ``least`` pixels wide."""

    blocks: Sequence[Block] = ()
    least = 1.0

    def rectangle(self, one: Block) -> QRectF:
        """Where a block is."""
        found = QRectF(self.frame.place(one.x[0], one.y[0]), self.frame.place(one.x[1], one.y[1])).normalized()
        found.setWidth(max(self.least, found.width()))
        return found

    def draw(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for one in self.blocks:
            where = self.rectangle(one)
            if one.outline is None:
                painter.fillRect(where, one.fill)
                continue
            # In whole pixels, so that fill and outline meet.
            whole = where.toAlignedRect()
            painter.fillRect(whole, one.fill)
            painter.setPen(one.outline)
            painter.drawRect(whole.adjusted(0, 0, -1, -1))


# --- Points -----------------------------------------------------------------------------------------------------------
class Points(Layer):
    """Points with their glyphs, many at a time; ``order`` says which are drawn, the lowest first, and ``dim`` how many
    of them step back."""

    def __init__(self, frame: Frame, z: float, still: Still | None = None) -> None:
        super().__init__(frame, z, still, overhang=1.0)
        self.across = self.up = np.empty(0)
        """Figures."""
        self.glyphs: Sequence[Glyph] = ()
        self.radius: np.ndarray | float = 1.0
        """In pixels, of each or of all."""
        self.order: np.ndarray = np.empty(0, int)
        self.dim = 0
        self._sprites: dict[tuple[Glyph, float, float, Colours], QPixmap] = {}

    def draw(self, painter: QPainter) -> None:
        x, y = self.frame.to_x(self.across), self.frame.to_y(self.up)
        radii = np.broadcast_to(self.radius, x.shape)
        inside = self.frame.area.adjusted(-1, -1, 1, 1)
        seen = (x >= inside.left()) & (x <= inside.right()) & (y >= inside.top()) & (y <= inside.bottom())
        order, dim = self.order[seen[self.order]], int(seen[self.order[: self.dim]].sum())
        colours, ratio = self.frame.colours, painter.device().devicePixelRatioF()
        known: dict[tuple[int, float], tuple[QPixmap, float]] = {}
        places = zip(order.tolist(), x[order].tolist(), y[order].tolist(), radii[order].tolist(), strict=True)
        if dim:
            painter.setOpacity(_DIM)
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

    def _sprite(self, glyph: Glyph, radius: float, ratio: float) -> QPixmap:
        key = glyph, radius, ratio, self.frame.colours
        if key not in self._sprites:
            if len(self._sprites) > _SPRITES:
                self._sprites.clear()
            self._sprites[key] = sprite(glyph, radius, ratio, self.frame.colours)
        return self._sprites[key]


class Whiskers(Layer):
    """Intervals along both axes, each in its own colour; those that a point hides are left out."""

    def __init__(self, frame: Frame, z: float, still: Still | None = None) -> None:
        super().__init__(frame, z, still)
        self.across = self.up = np.empty((0, 3))
        """(n, 3) each: value, low and high end, in figures."""
        self.colours: Sequence[str] = ()
        self.hidden = 0.0
        """The radius of the points."""

    def draw(self, painter: QPainter) -> None:
        x, y = self.frame.to_x(self.across), self.frame.to_y(self.up)
        area = self.frame.area
        seen = (
            (x[:, 2] >= area.left()) & (x[:, 1] <= area.right()) & (y[:, 1] >= area.top()) & (y[:, 2] <= area.bottom())
        )
        wide = np.flatnonzero(seen & (x[:, 2] - x[:, 1] > _HIDDEN * self.hidden))
        high = np.flatnonzero(seen & (y[:, 1] - y[:, 2] > _HIDDEN * self.hidden))
        index = np.r_[wide, high]
        ends = (
            np.r_[x[wide, 1], x[high, 0]],
            np.r_[y[wide, 0], y[high, 1]],
            np.r_[x[wide, 2], x[high, 0]],
            np.r_[y[wide, 0], y[high, 2]],
        )
        known = {name: number for number, name in enumerate(dict.fromkeys(self.colours))}
        numbers = np.array([known[name] for name in self.colours], int)[index]
        for name, number in known.items():
            colour = QColor(name)
            colour.setAlpha(_FAINT)
            painter.setPen(QPen(colour, 1.2))
            own = np.flatnonzero(numbers == number)
            # One by one: thousands of lines that are alive at once would call Python's collector.
            for line in zip(*(end[own].tolist() for end in ends), strict=True):
                painter.drawLine(QLineF(*line))


@dataclass(frozen=True)
class Interval:
    """An upright interval, in figures."""

    place: float
    low: float
    high: float
    colour: str = ""
    """That of words if none is given."""


class Beams(Layer):
    """Upright intervals with a beam at either end, in two strokes, so that they stand out from bar and ground."""

    def __init__(self, frame: Frame, z: float) -> None:
        super().__init__(frame, z)
        self.intervals: Sequence[Interval] = ()
        self.beam = 5.0
        """Half of a beam, in pixels."""

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


# --- Legends ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Entry:
    """What one look means: a fill, or a line with the mark of its points."""

    text: str
    fill: QBrush | QColor | None = None
    line: QPen | None = None
    glyph: Glyph | None = None


class Legend(Layer):
    """In a line beneath the frame's title, or in a box in a corner of the view."""

    clipped = False

    def __init__(self, frame: Frame, z: float) -> None:
        super().__init__(frame, z)
        self.entries: Sequence[Entry] = ()
        self.corner: tuple[int, int] | None = None
        """Of the view: −1 or 1 for left or right, and for bottom or top."""

    @property
    def box(self) -> QRectF:
        """Where the box is."""
        em, area, metrics = self.frame.em, self.frame.area, QFontMetricsF(self.frame.font())
        widest = max((metrics.horizontalAdvance(one.text) for one in self.entries), default=0.0)
        found = QRectF(0, 0, widest + 3.2 * em, (1.35 * len(self.entries) + 0.4) * em)
        across, up = self.corner or (-1, 1)
        found.moveLeft(area.left() + 0.5 * em if across < 0 else area.right() - 0.5 * em - found.width())
        found.moveTop(area.top() + 0.5 * em if up > 0 else area.bottom() - 0.5 * em - found.height())
        return found

    def draw(self, painter: QPainter) -> None:
        em, metrics, colours = self.frame.em, QFontMetricsF(self.frame.font()), self.frame.colours
        if not self.entries:
            return
        if self.corner is not None:
            ground = QColor(colours.base)
            ground.setAlpha(215)
            painter.setPen(QPen(QColor(colours.border), 1))
            painter.setBrush(ground)
            painter.drawRect(self.box)
        x, y = (
            (self.frame.title_left, 1.65 * em)
            if self.corner is None
            else (self.box.left() + 0.4 * em, self.box.top() + 0.3 * em)
        )
        for one in self.entries:
            sample = 1.0 if one.line is None and one.glyph is None else 2.0
            self._paint_sample(painter, one, QRectF(x, y, (sample - 0.3) * em, 1.2 * em))
            painter.setPen(QColor(colours.text))
            width = metrics.horizontalAdvance(one.text)
            room = QRectF(x + sample * em, y, width + 2, 1.2 * em)
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, one.text)
            if self.corner is None:
                x += width + (1.2 + sample) * em
            else:
                y += 1.35 * em

    def _paint_sample(self, painter: QPainter, one: Entry, room: QRectF) -> None:
        em, middle = self.frame.em, room.center()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if one.fill is not None:
            box = QRectF(room.left(), middle.y() - 0.35 * em, 0.7 * em, 0.7 * em)
            painter.fillRect(box, one.fill)
            if isinstance(one.fill, QBrush):
                painter.setPen(QColor(one.fill.color()))
                painter.drawRect(box)
        if one.line is not None:
            painter.setPen(one.line)
            painter.drawLine(QPointF(room.left(), middle.y()), QPointF(room.right(), middle.y()))
        if one.glyph is not None:
            paint_glyph(painter, middle, 0.3 * em, one.glyph, self.frame.colours)


# --- Words ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Label:
    """Words and where they may stand, the best place first."""

    text: str
    colour: str
    spots: Callable[[QSizeF], Iterable[QRectF]]
    """For words of this size, in pixels."""
    always: bool = False
    """Whether they stand at the first place if none is free; else they are left out."""
    ground: bool = False
    """Whether lines step back behind them."""
    leader: QPointF | None = None
    """What a line leads to from a place that is far from it."""
    angle: float = 0.0
    """Turned around the middle of the first place."""


class Labels(Layer):
    """Words that keep clear of each other, of points and of lines. Where they stand is worked out once they are drawn:
    a frame may change several times before."""

    clipped = False

    def __init__(self, frame: Frame, z: float, still: Still | None = None, share: float = 1.0) -> None:
        """``share``: of the frame's font."""
        super().__init__(frame, z, still)
        self._share = share
        self.labels: Callable[[], Iterable[Label]] = tuple
        """What is to be placed, asked again each time the frame has changed."""
        self.covers: Callable[[QRectF], bool] = lambda _spot: False
        """Whether a point lies in a place, be it in part."""
        self.taken: Callable[[], Sequence[QRectF]] = tuple
        """Other occupied places."""
        self._placed: list[tuple[Label, QRectF]] | None = None

    def redraw(self) -> None:
        self._placed = None
        super().redraw()

    @property
    def letters(self) -> QFont:
        """Its font."""
        found = QFont(self.frame.font())
        if found.pointSizeF() > 0:
            found.setPointSizeF(self._share * found.pointSizeF())
        else:
            found.setPixelSize(round(self._share * found.pixelSize()))
        return found

    @property
    def placed(self) -> list[tuple[Label, QRectF]]:
        """What stands where."""
        if self._placed is None:
            metrics, area = QFontMetricsF(self.letters), self.frame.area.adjusted(-1, -1, 1, 1)
            taken, self._placed = [one.adjusted(-1, -1, 1, 1) for one in self.taken()], []
            for label in self.labels():
                size = QSizeF(metrics.horizontalAdvance(label.text) + 4, 0.86 * metrics.height())
                spots = list(itertools.islice(label.spots(size), 200))
                free = (
                    one
                    for one in spots
                    if area.contains(one) and not self.covers(one) and not any(one.intersects(each) for each in taken)
                )
                spot = next(free, spots[0] if label.always and spots else None)
                if spot is not None:
                    self._placed.append((label, spot))
                    taken.append(spot)
        return self._placed

    def draw(self, painter: QPainter) -> None:
        painter.setFont(self.letters)
        em, colours = self.frame.em, self.frame.colours
        for label, spot in self.placed:
            painter.save()
            if label.angle:
                painter.translate(spot.center())
                painter.rotate(label.angle)
                spot = QRectF(-spot.width() / 2, -spot.height() / 2, spot.width(), spot.height())
            if label.leader is not None and abs(spot.center().y() - label.leader.y()) > em:
                painter.setPen(QPen(QColor(colours.border), 1))
                end = spot.left() if spot.left() > label.leader.x() else spot.right()
                painter.drawLine(label.leader, QPointF(end, spot.center().y()))
            if label.ground:
                ground = QColor(colours.base)
                ground.setAlpha(215)
                painter.fillRect(spot, ground)
            painter.setPen(QColor(label.colour))
            painter.drawText(spot.adjusted(0, -em, 4, em), Qt.AlignmentFlag.AlignVCenter, label.text)
            painter.restore()


def beside(place: QPointF, away: float, size: QSizeF, far: bool = False) -> Iterable[QRectF]:
    """Places for words next to a point, the best places first; ``far``: also where a line has to lead to them."""
    width, height = size.width(), size.height()
    middle = place.y() - height / 2
    sides = place.x() + away, place.x() - away - width
    for down in (0.0, 0.5, -0.5):
        for left in sides:
            yield QRectF(left, middle + down * height, width, height)
    for down in (away + 0.4 * height, -away - 0.4 * height):
        for left in (place.x() - 0.3 * away, place.x() - width + 0.3 * away, place.x() - width / 2):
            yield QRectF(left, middle + down, width, height)
    for down in (1.0, -1.0, 2.0, -2.0, 3.0, -3.0) if far else ():
        for left in sides:
            yield QRectF(left, middle + down * height, width, height)


# --- What is chosen ---------------------------------------------------------------------------------------------------
class Rings(Layer):
    """Rings around points."""

    clipped = False

    def __init__(self, frame: Frame, z: float) -> None:
        super().__init__(frame, z)
        self.rings: Sequence[tuple[QPointF, float]] = ()
        """Middle and radius, in pixels."""
        self.pen = QPen()

    def show_rings(self, rings: Sequence[tuple[QPointF, float]], pen: QPen) -> None:
        """Draw these."""
        if (list(rings), pen) != (list(self.rings), self.pen):
            # Only what was and what will be there is drawn again: what lies beneath may be thousands of points.
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
    """A word on its own ground."""

    text: str
    fill: str
    place: QPointF
    """Of its point, in pixels."""


class Badges(Layer):
    """Marks of points, above them and to their right, or on the other side if there is no room."""

    clipped = False

    def __init__(self, frame: Frame, z: float) -> None:
        super().__init__(frame, z)
        self.badges: Callable[[], Sequence[Badge]] = tuple
        self.radius = 0.0
        """Of the points."""

    def draw(self, painter: QPainter) -> None:
        font = QFont(self.frame.font())
        font.setBold(True)
        painter.setFont(font)
        metrics, em = QFontMetricsF(font), self.frame.em
        for one in self.badges():
            spot = self._spot(one.place, metrics.horizontalAdvance(one.text) + 0.5 * em)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(one.fill))
            painter.drawRoundedRect(spot, 3, 3)
            painter.setPen(QColor(self.frame.colours.base))
            painter.drawText(spot, Qt.AlignmentFlag.AlignCenter, one.text)

    def _spot(self, place: QPointF, width: float) -> QRectF:
        height, away = 1.05 * self.frame.em, 0.7 * self.radius
        left, top = place.x() + away, place.y() - self.radius - height
        if left + width > self.frame.area.right():
            left = place.x() - away - width
        if top < 0:
            top = place.y() + self.radius
        return QRectF(left, top, width, height)
