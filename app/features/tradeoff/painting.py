"""Painting the trade-off view: axes, front, intervals, points, names and marks, on the screen or on paper."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap

from app.features.tradeoff.axes import Axis
from app.features.tradeoff.scene import Scene
from app.features.tradeoff.styles import Glyph, Looks, paint_glyph
from app.shell.theme import Colours
from engine.figures.scales import Scale, tick_text
from engine.measure.metrics import HIGHER, NEITHER

_RIGHT, _TOP, _BOTTOM = 1.2, 0.8, 2.7
"""In heights of the font: room for axes."""
_RADIUS, _SMALL_RADIUS = 0.36, 0.22
_MANY = 400
"""From so many points on they are small."""
_NAMES = 40
"""So many points of the front are named at most."""
_DIM = 0.22
Sections = tuple[Scale | None, Scale | None]
"""Which part is shown across and up; ``None`` for all."""
EVERYTHING: Sections = (None, None)


class Painting:
    """One scene, or a section of it, on one piece of screen or paper."""

    def __init__(self, shown: Scene, looks: Looks, font: QFont, whole: QRectF, sections: Sections = EVERYTHING) -> None:
        self.shown, self.looks, self.font = shown, looks, font
        self._metrics = QFontMetricsF(font)
        self.em = em = self._metrics.height()
        self.whole = whole
        self.radius = em * (_SMALL_RADIUS if len(shown.points) > _MANY else _RADIUS)
        self.wholes = tuple(
            _scale(np.r_[values, np.repeat(floors, 3).reshape(-1, 3)], shown.options.intervals, logarithmic)
            for values, floors, logarithmic in zip((shown.x, shown.y), shown.floors, shown.logarithmic, strict=True)
        )
        """Across and up, with room for every point, and for what judges make of the reference speech."""
        self.across, self.up = (one or other for one, other in zip(sections, self.wholes, strict=True))
        self._y_ticks = self.up.ticks(max(2, int((whole.height() - 3 * em) / (2.2 * em))))
        # At least as wide as most are: the plot shall stay where it is while its section changes.
        widest = max(self._metrics.horizontalAdvance(one) for one in ("0.000", *map(tick_text, self._y_ticks)))
        self.area = whole.adjusted(widest + 2.2 * em, _TOP * em, -_RIGHT * em, -_BOTTOM * em)
        room = max(2, int(self.area.width() / (4 * em)))
        self._x_ticks = self.across.ticks(room)
        self.px = self._to_x(shown.x)
        self.py = self._to_y(shown.y)
        """(n, 3) each: where value, low and high end lie."""
        left, right, top, bottom = self.area.left(), self.area.right(), self.area.top(), self.area.bottom()
        x, y, rim = self.px[:, 0], self.py[:, 0], 0.5
        self.inside = (x >= left - rim) & (x <= right + rim) & (y >= top - rim) & (y <= bottom + rim)
        """Which points lie in the section."""
        self._edge: list[QRectF] = []
        """The front's line, piece by piece, once it is drawn."""
        self._words: list[QRectF] = []
        """What stands beside lines, once it is drawn."""

    def _to_x(self, values: np.ndarray) -> np.ndarray:
        return self.area.left() + self.across.share(values) * self.area.width()

    def _to_y(self, values: np.ndarray) -> np.ndarray:
        return self.area.bottom() - self.up.share(values) * self.area.height()

    def place(self, index: int) -> QPointF:
        """Where a point is."""
        return QPointF(self.px[index, 0], self.py[index, 0])

    def nearest(self, place: QPointF) -> int | None:
        """The point at a place, if any; own ones before published ones."""
        if not len(self.px):
            return None
        far = np.hypot(self.px[:, 0] - place.x(), self.py[:, 0] - place.y())
        far[~self.inside] = np.inf
        index = int(len(far) - 1 - np.argmin(far[::-1]))
        return index if far[index] <= self.radius + 0.35 * self.em else None

    def within(self, box: QRectF) -> np.ndarray:
        """The indices of points in a rectangle."""
        x, y = self.px[:, 0], self.py[:, 0]
        within = (x >= box.left()) & (x <= box.right()) & (y >= box.top()) & (y <= box.bottom())
        return np.flatnonzero(within & self.inside)

    # --- All that stays while nothing is chosen ----------------------------------------------------------------------
    def paint(
        self, painter: QPainter, colours: Colours, bright: Collection[int] | None = None, ratio: float | None = None
    ) -> None:
        """Draw everything. Points that are not ``bright``, where these are given, step back. With the pixel ``ratio``
        of a screen, points are drawn as pictures that are kept."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self.font)
        painter.fillRect(self.whole, QColor(colours.base))
        self._paint_axes(painter, colours)
        painter.save()
        painter.setClipRect(self.area)
        self._paint_front(painter, colours)
        self._paint_floors(painter, colours)
        glyphs = [self.looks.glyph(one.techniques, one.kind) for one in self.shown.points]
        self._paint_series(painter, colours)
        if self.shown.options.intervals:
            self._paint_intervals(painter, glyphs)
        painter.setClipRect(self.area.adjusted(-self.em, -self.em, self.em, self.em))
        self._paint_points(painter, glyphs, bright, ratio)
        painter.restore()
        self._paint_names(painter, colours)

    def _paint_axes(self, painter: QPainter, colours: Colours) -> None:
        em, area = self.em, self.area
        grid, words = QPen(QColor(colours.raised), 1), QColor(colours.muted)
        places = [(one, float(self._to_x(np.array(one)))) for one in self._x_ticks]
        for value, x in places:
            painter.setPen(grid)
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            painter.setPen(words)
            tick = QRectF(x - 3 * em, area.bottom() + 0.2 * em, 6 * em, em)
            painter.drawText(tick, Qt.AlignmentFlag.AlignHCenter, tick_text(value))
        for value in self._y_ticks:
            y = float(self._to_y(np.array(value)))
            painter.setPen(grid)
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(words)
            tick = QRectF(self.whole.left(), y - em, area.left() - self.whole.left() - 0.4 * em, 2 * em)
            painter.drawText(tick, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, tick_text(value))
        painter.setPen(QPen(QColor(colours.border), 1))
        painter.drawRect(area)
        x_axis, y_axis = self.shown.options.axes
        line = QRectF(area.left(), area.bottom() + 1.35 * em, area.width(), 1.2 * em)
        self._paint_title(painter, line, x_axis, self.across.logarithmic, colours)
        painter.save()
        painter.translate(self.whole.left() + 0.2 * em, area.bottom())
        painter.rotate(-90)
        self._paint_title(painter, QRectF(0, 0, area.height(), 1.2 * em), y_axis, self.up.logarithmic, colours)
        painter.restore()

    def _paint_title(self, painter: QPainter, line: QRectF, one: Axis, logarithmic: bool, colours: Colours) -> None:
        """An axis's title, and at that end of it that is better, that it is."""
        painter.setPen(QColor(colours.text))
        room = line.width() - 2.4 * self.em
        text = one.label(self.shown.options.ratios) + (", logarithmic" if logarithmic else "")
        if self._metrics.horizontalAdvance(text) > room and not self.shown.options.ratios:
            text = one.title
        text = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(room, 0.0))
        painter.drawText(line, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter, text)
        if one.better == NEITHER:
            return
        painter.setPen(QColor(colours.good))
        side, words = (
            (Qt.AlignmentFlag.AlignRight, "better →")
            if one.better == HIGHER
            else (Qt.AlignmentFlag.AlignLeft, "← better")
        )
        # On short axes the arrow alone.
        both = self._metrics.horizontalAdvance(text) + 2 * self._metrics.horizontalAdvance("better → ")
        arrow = words if both < line.width() else words.replace("better", "").strip()
        painter.drawText(line, side | Qt.AlignmentFlag.AlignVCenter, arrow)

    def _paint_front(self, painter: QPainter, colours: Colours) -> None:
        """The edge of what is reached: towards it lies what some point is at least as good as, in both."""
        if not self.shown.walk:
            return
        x_axis, y_axis = self.shown.options.axes
        places = [self.place(index) for index in self.shown.walk]
        towards_right, towards_top = x_axis.better != HIGHER, y_axis.better != HIGHER
        # Of a section, points may lie beyond the area.
        across = [self.area.left(), self.area.right(), *(one.x() for one in places)]
        up = [self.area.bottom(), self.area.top(), *(one.y() for one in places)]
        worse_x = max(across) if towards_right else min(across)
        worse_y = min(up) if towards_top else max(up)
        first_x, last_x = places[0].x(), places[-1].x()
        # The worse end of each axis is reached from the point that is best in the other.
        corners = [QPointF(first_x, worse_y) if towards_right else QPointF(worse_x, places[0].y())]
        for one, other in itertools.pairwise(places):
            x = max(one.x(), other.x()) if towards_right else min(one.x(), other.x())
            y = min(one.y(), other.y()) if towards_top else max(one.y(), other.y())
            corners += [one, QPointF(x, y)]
        corners.append(places[-1])
        corners.append(QPointF(worse_x, places[-1].y()) if towards_right else QPointF(last_x, worse_y))
        self._edge = [QRectF(one, other).normalized() for one, other in itertools.pairwise(corners)]
        line = QPainterPath(corners[0])
        for one in corners[1:]:
            line.lineTo(one)
        ground = QPainterPath(line)
        ground.lineTo(QPointF(worse_x, worse_y))
        ground.closeSubpath()
        tint = QColor(colours.accent)
        tint.setAlpha(16)
        painter.fillPath(ground, tint)
        tint.setAlpha(170)
        painter.setPen(QPen(tint, 1.6))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(line)

    def _paint_floors(self, painter: QPainter, colours: Colours) -> None:
        """What judges make of the reference speech: below, no two points can be told apart."""
        painter.setPen(QPen(QColor(colours.muted), 1.2, Qt.PenStyle.DashLine))
        area, words, self._words = self.area, "reference speech", []
        width, height = self._metrics.horizontalAdvance(words) + 6, 1.1 * self.em
        across, up = (np.array(one, float) for one in self.shown.floors)
        lines = [
            *((QPointF(x, area.top()), QPointF(x, area.bottom())) for x in self._to_x(across).tolist()),
            *((QPointF(area.left(), y), QPointF(area.right(), y)) for y in self._to_y(up).tolist()),
        ]
        for start, end in lines:
            painter.drawLine(start, end)
            level = start.y() == end.y()
            lefts = np.arange(end.x() - width, start.x(), -width / 2) if level else (end.x() + 3, end.x() - 3 - width)
            tops = (end.y() - height, end.y()) if level else np.arange(start.y(), end.y() - height, height)
            spots = [QRectF(float(left), float(top), width, height) for top in tops for left in lefts]
            spots = [one for one in spots if area.contains(one)] or spots
            spot = next((one for one in spots if not self._covers(one)), spots[0])
            painter.drawText(spot, Qt.AlignmentFlag.AlignCenter, words)
            self._words.append(spot)

    def _paint_series(self, painter: QPainter, colours: Colours) -> None:
        """A faint line through the published results of one table."""
        colour = QColor(colours.muted)
        colour.setAlpha(110)
        painter.setPen(QPen(colour, 1.0, Qt.PenStyle.DotLine))
        ghosts = [(place, one) for place, one in enumerate(self.shown.points) if one.published]
        for _, table in itertools.groupby(ghosts, lambda one: (one[1].source, one[1].model)):
            painter.drawPolyline([self.place(place) for place, _ in table])

    def _paint_intervals(self, painter: QPainter, glyphs: list[Glyph]) -> None:
        px, py = self.px, self.py
        # What its point hides anyway is left out.
        wide = np.flatnonzero(px[:, 2] - px[:, 1] > 1.6 * self.radius)
        high = np.flatnonzero(py[:, 1] - py[:, 2] > 1.6 * self.radius)
        names = [one.colours[0] for one in glyphs]
        pen_of = ""
        index = np.r_[wide, high]
        order = np.argsort([names[one] for one in index.tolist()], kind="stable") if len(index) else index
        ends = (
            np.r_[px[wide, 1], px[high, 0]],
            np.r_[py[wide, 0], py[high, 1]],
            np.r_[px[wide, 2], px[high, 0]],
            np.r_[py[wide, 0], py[high, 2]],
        )
        # One by one: thousands of lines that are alive at once would call Python's collector.
        for one, *line in zip(index[order].tolist(), *(end[order].tolist() for end in ends), strict=True):
            if names[one] != pen_of:
                pen_of = names[one]
                colour = QColor(pen_of)
                colour.setAlpha(110)
                painter.setPen(QPen(colour, 1.2))
            painter.drawLine(QLineF(*line))

    def _paint_points(
        self, painter: QPainter, glyphs: list[Glyph], bright: Collection[int] | None, ratio: float | None
    ) -> None:
        rank = np.zeros(len(glyphs), int)
        # The front lies on top of what it beats, what is chosen on top of all.
        rank[list(self.shown.walk)] = 1
        rank[list(bright or ())] += 2
        order = np.argsort(rank, kind="stable")
        order = order[self.inside[order]]
        places = zip(order.tolist(), self.px[order, 0].tolist(), self.py[order, 0].tolist(), strict=True)
        sprites: dict[int, tuple[QPixmap, float]] = {}
        painter.setOpacity(1.0 if bright is None else _DIM)
        first_bright = int(np.searchsorted(rank[order], 2))
        for number, (index, x, y) in enumerate(places):
            if number == first_bright:
                painter.setOpacity(1.0)
            glyph = glyphs[index]
            if ratio is None:
                paint_glyph(painter, QPointF(x, y), self.radius, glyph, self.looks.colours)
                continue
            if id(glyph) not in sprites:
                sprite = self.looks.sprite(glyph, self.radius, ratio)
                sprites[id(glyph)] = sprite, sprite.deviceIndependentSize().width() / 2
            sprite, half = sprites[id(glyph)]
            painter.drawPixmap(QPointF(x - half, y - half), sprite)
        painter.setOpacity(1.0)

    def _paint_names(self, painter: QPainter, colours: Colours) -> None:
        """Points of the front by name, where there is room."""
        em, walk = self.em, [index for index in self.shown.walk if self.inside[index]]
        if not walk or len(walk) > _NAMES:
            return
        font = QFont(self.font)
        if font.pointSizeF() > 0:
            font.setPointSizeF(0.88 * font.pointSizeF())
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        taken = [one.adjusted(-1, -1, 1, 1) for one in (*self._edge, *self._words)]
        for index in walk:
            place, text = self.place(index), self.shown.points[index].title
            width, height = metrics.horizontalAdvance(text) + 4, metrics.height() * 0.86
            for spot in _spots(place, width, height, self.radius + 0.3 * em):
                if (
                    self.area.contains(spot)
                    and not self._covers(spot)
                    and not any(spot.intersects(one) for one in taken)
                ):
                    painter.setPen(QColor(colours.muted))
                    painter.drawText(spot.adjusted(0, -em, 0, em), Qt.AlignmentFlag.AlignVCenter, text)
                    taken.append(spot)
                    break
        painter.setFont(self.font)

    def _covers(self, spot: QRectF) -> bool:
        """Whether any point lies in a rectangle, be it in part."""
        room, middle = 1.1 * self.radius, spot.center()
        beside = np.abs(self.px[:, 0] - middle.x()) < spot.width() / 2 + room
        return bool((beside & (np.abs(self.py[:, 0] - middle.y()) < spot.height() / 2 + room)).any())

    # --- What is chosen ----------------------------------------------------------------------------------------------
    def paint_chosen(
        self, painter: QPainter, colours: Colours, current: int | None, selected: Collection[int], focused: bool
    ) -> None:
        """Rings around what is selected, and lines from the current point to its figures."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.accent), 1.3))
        if len(selected) <= _MANY:
            for index in (one for one in selected if self.inside[one]):
                painter.drawEllipse(self.place(index), self.radius + 3, self.radius + 3)
        if current is None or not self.inside[current]:
            return
        place = self.place(current)
        painter.setPen(QPen(QColor(colours.muted), 1.1, Qt.PenStyle.DotLine))
        painter.drawLine(place, QPointF(place.x(), self.area.bottom()))
        painter.drawLine(place, QPointF(self.area.left(), place.y()))
        painter.setPen(QPen(QColor(colours.text), 2.4 if focused else 1.6))
        painter.drawEllipse(place, self.radius + 4.5, self.radius + 4.5)

    def paint_marks(self, painter: QPainter, colours: Colours, marks: Mapping[int, str]) -> None:
        """What points are besides, in a letter or a word: A, B, or what is set up now."""
        font = QFont(self.font)
        font.setBold(True)
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        for index, text in marks.items():
            if not self.inside[index]:
                continue
            spot = self._badge(index, metrics.horizontalAdvance(text) + 0.5 * self.em)
            fill = {"A": colours.baseline, "B": colours.accelerated}.get(text, colours.text)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(fill))
            painter.drawRoundedRect(spot, 3, 3)
            painter.setPen(QColor(colours.base))
            painter.drawText(spot, Qt.AlignmentFlag.AlignCenter, text)
        painter.setFont(self.font)

    def _badge(self, index: int, width: float) -> QRectF:
        """Above the point and to its right; on the other side where there is no room."""
        place, height = self.place(index), 1.05 * self.em
        left, top = place.x() + 0.7 * self.radius, place.y() - self.radius - height
        if left + width > self.area.right():
            left = place.x() - 0.7 * self.radius - width
        if top < self.whole.top():
            top = place.y() + self.radius
        return QRectF(left, top, width, height)


def _scale(values: np.ndarray, intervals: bool, logarithmic: bool) -> Scale:
    """With room for ``values``, (n, 3), and their ``intervals``. On a logarithmic axis an interval that comes close to
    0 would take all room, so one that ends more than a decade below the least value is cut off."""
    if not intervals:
        return Scale.of(values[:, :1], logarithmic)
    if logarithmic:
        least = values[:, 0].min(initial=np.inf) / 10.0
        values = np.where(values < least, values[:, :1], values)
    return Scale.of(values, logarithmic)


def _spots(place: QPointF, width: float, height: float, away: float) -> Iterator[QRectF]:
    """Where a name may stand, the best places first."""
    middle = place.y() - height / 2
    for down in (0.0, 0.5, -0.5):
        for left in (place.x() + away, place.x() - away - width):
            yield QRectF(left, middle + down * height, width, height)
    for down in (away + 0.4 * height, -away - 0.4 * height):
        for left in (place.x() - 0.3 * away, place.x() - width + 0.3 * away, place.x() - width / 2):
            yield QRectF(left, middle + down, width, height)
