"""Layers of text: labels that avoid each other, points and lines; and legends."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPen

from paretone.figures.glyphs import Glyph
from paretone_app.numbers import localised
from paretone_app.plotting.frame import Frame, Layer, StaticLayers
from paretone_app.plotting.points import paint_glyph


@dataclass(frozen=True)
class Entry:
    text: str
    fill: QBrush | QColor | None = None
    line: QPen | None = None
    glyph: Glyph | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", localised(self.text))


class Legend(Layer):
    """Legend in a line below the frame's title, or in a box in a corner of the view."""

    clipped = False

    def __init__(self, frame: Frame, z: float) -> None:
        super().__init__(frame, z)
        self.entries: Sequence[Entry] = ()
        self.corner: tuple[int, int] | None = None
        """Corner of the view: (−1 left or 1 right, −1 bottom or 1 top); ``None`` for a line below the title."""

    @property
    def box(self) -> QRectF:
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


@dataclass(frozen=True)
class Label:
    text: str
    colour: str
    spots: Callable[[QSizeF], Iterable[QRectF]]
    """Candidate positions for a label of this size, in pixels."""
    always: bool = False
    """Whether to use the first position if none is free; otherwise the label is omitted."""
    ground: bool = False
    leader: QPointF | None = None
    """Target of the line from a distant label."""
    angle: float = 0.0
    """Rotation about the centre of the position, in degrees."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", localised(self.text))


class Labels(Layer):
    """Labels that avoid each other, points and lines; placed when drawn: a frame may change several times before."""

    clipped = False

    def __init__(self, frame: Frame, z: float, still: StaticLayers | None = None, share: float = 1.0) -> None:
        """``share``: font size relative to the frame's font."""
        super().__init__(frame, z, still)
        self._share = share
        self.labels: Callable[[], Iterable[Label]] = tuple
        """Source of the labels, called after each change of the frame."""
        self.covers: Callable[[QRectF], bool] = lambda _spot: False
        """Whether a rectangle overlaps a point."""
        self.taken: Callable[[], Sequence[QRectF]] = tuple
        """Other occupied rectangles."""
        self._placed: list[tuple[Label, QRectF]] | None = None

    def redraw(self) -> None:
        self._placed = None
        super().redraw()

    @property
    def letters(self) -> QFont:
        found = QFont(self.frame.font())
        if found.pointSizeF() > 0:
            found.setPointSizeF(self._share * found.pointSizeF())
        else:
            found.setPixelSize(round(self._share * found.pixelSize()))
        return found

    @property
    def placed(self) -> list[tuple[Label, QRectF]]:
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


def next_to(place: QPointF, away: float, size: QSizeF, far: bool = False) -> Iterable[QRectF]:
    """Positions for a label next to a point, best first; ``far``: also positions that need a leader line."""
    width, height = size.width(), size.height()
    middle = place.y() - height / 2
    sides = place.x() + away, place.x() - away - width
    for down in (0.0, 0.5, -0.5, 0.8, -0.8):
        for left in sides:
            yield QRectF(left, middle + down * height, width, height)
    for down in (away + 0.4 * height, -away - 0.4 * height):
        for left in (place.x() - 0.3 * away, place.x() - width + 0.3 * away, place.x() - width / 2):
            yield QRectF(left, middle + down, width, height)
    for down in (1.0, -1.0, 2.0, -2.0, 3.0, -3.0) if far else ():
        for left in sides:
            yield QRectF(left, middle + down * height, width, height)
