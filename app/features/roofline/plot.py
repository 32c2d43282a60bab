"""The roofline as a plot: what components reach, over how many operations they do for each byte, beneath what the
machine allows. Both axes are logarithmic; a point's area is its share of the time.

Mouse: a point is chosen by a click. Keys: left and right go from point to point, Home and End to the first and last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.shell.theme import Colours
from app.widgets.side_buttons import SIDES
from engine.measure.roofline.report import Component, Phase, RooflineReport

_MOVES = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End)
_LEFT, _RIGHT, _TOP, _BOTTOM = 4.6, 1.0, 1.9, 2.9
"""In heights of the font: room for axes and the title."""
_SMALLEST, _LARGEST = 0.22, 0.75
"""Radii of points, in heights of the font."""
_NAMED = 0.02
"""Share of the time from which on a point is named; the others are by their tooltips, and when they are chosen."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))


@dataclass(frozen=True)
class Point:
    """One component of one report."""

    side: str
    phase: Phase
    component: Component
    row: int
    """Among the report's rows."""

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.component.work.intensity

    @property
    def reached(self) -> float:
        """Operations a second."""
        return self.component.work.operations / self.component.seconds


def points_of(side: str, report: RooflineReport | None) -> Iterator[Point]:
    """Every component of ``report`` that has a place in the plot."""
    if report is None:
        return
    for row, (phase, one) in enumerate(report.components()):
        if one.work.operations and one.work.bytes and one.seconds:
            yield Point(side, phase, one, row)


def label(report: RooflineReport, phase: Phase, component: Component) -> str:
    """A component's title, with its phase where others have such a component as well."""
    several = sum(one.name == component.name for _, one in report.components()) > 1
    return f"{component.title} ({phase.title.lower()})" if several else component.title


def rate(value: float) -> str:
    """Operations a second in words."""
    size, unit = next((one for one in _UNITS if value >= one[0]), _UNITS[-1])
    return f"{value / size:.3g} {unit}"


class RooflinePlot(QWidget):
    """Reports of A and B under the roofs of their machine."""

    chosen = Signal(str, int)
    """The user chose a component: its side, and its row among that report's components."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._reports: dict[str, RooflineReport | None] = dict.fromkeys(SIDES)
        self._points: tuple[Point, ...] = ()
        self._at = -1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Roofline plot")

    # --- Methods in --------------------------------------------------------------------------------------------------
    def show_reports(self, reports: dict[str, RooflineReport | None]) -> None:
        """Show what was measured of A and B."""
        self._reports = dict(reports)
        self._points = tuple(point for side in SIDES for point in points_of(side, reports[side]))
        self._at = -1
        self._describe()

    def choose(self, side: str, row: int) -> None:
        """Choose a component by its row; none where it has no place here."""
        found = (index for index, one in enumerate(self._points) if (one.side, one.row) == (side, row))
        self._at = next(found, -1)
        self._describe()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.update()

    @property
    def points(self) -> tuple[Point, ...]:
        """What is drawn, A's first."""
        return self._points

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(32 * em, 20 * em)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(18 * em, 12 * em)

    # --- Geometry ----------------------------------------------------------------------------------------------------
    def _decades(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The ends of both axes, as powers of ten."""
        reports = [one for one in self._reports.values() if one is not None]
        across = [math.log10(point.intensity) for point in self._points]
        up = [math.log10(point.reached) for point in self._points]
        for report in reports:
            for precision in _precisions(report):
                across.append(math.log10(report.ceilings.ridge(precision)))
                up.append(math.log10(report.ceilings.operations_of(precision)))
        if not across:
            return (0.0, 1.0), (9.0, 10.0)
        return (math.floor(min(across) - 0.2), math.ceil(max(across) + 0.3)), (
            math.floor(min(up) - 0.2),
            math.ceil(max(up) + 0.1),
        )

    def _area(self, whole: QRectF) -> QRectF:
        em = self.fontMetrics().height()
        return whole.adjusted(_LEFT * em, _TOP * em, -_RIGHT * em, -_BOTTOM * em)

    def _place(self, area: QRectF, intensity: float, reached: float) -> QPointF:
        (left, right), (low, high) = self._decades()
        x = (math.log10(intensity) - left) / (right - left)
        y = (math.log10(reached) - low) / (high - low)
        return QPointF(area.left() + x * area.width(), area.bottom() - y * area.height())

    def _share(self, point: Point) -> float:
        """Of the time of its side."""
        measured = self._reports[point.side].measured
        return point.component.total_seconds / measured if measured else 0.0

    def _radius(self, point: Point) -> float:
        return self.fontMetrics().height() * max(_SMALLEST, _LARGEST * math.sqrt(max(0.0, self._share(point))))

    def point_at(self, place: QPointF) -> int | None:
        """The index of the point at a place in widget coordinates, the nearest of several."""
        area = self._area(QRectF(self.rect()))
        distances = [
            (_distance(self._place(area, one.intensity, one.reached), place) - self._radius(one), index)
            for index, one in enumerate(self._points)
        ]
        nearest = min(distances, default=(math.inf, 0))
        return nearest[1] if nearest[0] <= 0.4 * self.fontMetrics().height() else None

    # --- Painting ----------------------------------------------------------------------------------------------------
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.paint(painter, QRectF(self.rect()), self._colours, focused=self.hasFocus())

    def paint(self, painter: QPainter, whole: QRectF, colours: Colours, focused: bool = False) -> None:
        """Draw everything within ``whole``, on the screen or on paper."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self.font())
        painter.fillRect(whole, QColor(colours.base))
        area, em = self._area(whole), self.fontMetrics().height()
        title = QRectF(area.left(), whole.top(), area.width(), _TOP * em)
        painter.setPen(QColor(colours.text))
        words = "Components under their roofs"
        if self.fontMetrics().horizontalAdvance(words) > area.width():
            words = "Components and roofs"
        painter.drawText(title, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
        self._paint_axes(painter, area, colours)
        taken = list(self._paint_roofs(painter, area, colours))
        if 0 <= self._at < len(self._points):
            self._paint_drop(painter, area, self._points[self._at], colours)
        for index, point in enumerate(self._points):
            self._paint_point(painter, area, point, colours, index == self._at, focused)
        named = [one for index, one in enumerate(self._points) if index == self._at or self._share(one) >= _NAMED]
        for point in sorted(named, key=self._share, reverse=True):
            taken.append(self._paint_label(painter, area, point, colours, taken))

    def _paint_axes(self, painter: QPainter, area: QRectF, colours: Colours) -> None:
        em = self.fontMetrics().height()
        (left, right), (low, high) = self._decades()
        grid = QPen(QColor(colours.border), 1)
        for power in range(int(left), int(right) + 1):
            x = area.left() + (power - left) / (right - left) * area.width()
            painter.setPen(grid)
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            painter.setPen(QColor(colours.muted))
            number = f"{10.0**power:g}" if -3 <= power <= 4 else f"10{str(power).translate(_SUPERSCRIPTS)}"
            tick = QRectF(x - 3 * em, area.bottom() + 0.2 * em, 6 * em, em)
            painter.drawText(tick, Qt.AlignmentFlag.AlignHCenter, number)
        for power in range(int(low), int(high) + 1):
            y = area.bottom() - (power - low) / (high - low) * area.height()
            painter.setPen(grid)
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(QColor(colours.muted))
            tick = QRectF(area.left() - _LEFT * em, y - em, (_LEFT - 0.4) * em, 2 * em)
            words = rate(10.0**power).replace("FLOP/s", "")
            painter.drawText(tick, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, words)
        painter.drawText(
            QRectF(area.left(), area.bottom() + 1.4 * em, area.width(), 1.2 * em),
            Qt.AlignmentFlag.AlignHCenter,
            "Operations per byte (FLOP/B)",
        )
        painter.save()
        painter.translate(area.left() - (_LEFT - 0.9) * em, area.center().y())
        painter.rotate(-90)
        painter.drawText(QRectF(-8 * em, -em, 16 * em, 1.2 * em), Qt.AlignmentFlag.AlignHCenter, "FLOP/s")
        painter.restore()

    def _paint_roofs(self, painter: QPainter, area: QRectF, colours: Colours) -> Iterator[QRectF]:
        """The roofs of every precision in use; gives what their labels take up."""
        em = self.fontMetrics().height()
        (left, right), _ = self._decades()
        report = next((one for one in self._reports.values() if one is not None), None)
        if report is None:
            return
        used = dict.fromkeys(
            precision for one in self._reports.values() if one is not None for precision in _precisions(one)
        )
        for number, precision in enumerate(used):
            known = report.ceilings
            ridge, top = known.ridge(precision), known.operations_of(precision)
            start = max(10.0**left, 10.0 ** (self._decades()[1][0]) / known.bytes_of(precision))
            corners = [(start, start * known.bytes_of(precision)), (ridge, top), (10.0**right, top)]
            places = [self._place(area, *corner) for corner in corners]
            pen = QPen(QColor(colours.text), 1.6, Qt.PenStyle.SolidLine if number == 0 else Qt.PenStyle.DashLine)
            painter.setPen(pen)
            painter.drawPolyline(places)
            words = f"{precision}: {rate(top)}"
            width = self.fontMetrics().horizontalAdvance(words)
            spot = QRectF(area.right() - width - 0.3 * em, places[2].y() - 1.15 * em, width, 1.1 * em)
            _clear(painter, spot, colours)
            painter.setPen(QColor(colours.muted))
            painter.drawText(spot, Qt.AlignmentFlag.AlignRight, words)
            yield spot
            if number == 0:
                yield self._paint_slope(painter, places[0], places[1], known.bytes_of(precision), colours)

    def _paint_slope(self, painter: QPainter, low: QPointF, high: QPointF, speed: float, colours: Colours) -> QRectF:
        """The speed of memory, along its roof."""
        em = self.fontMetrics().height()
        angle = math.degrees(math.atan2(high.y() - low.y(), high.x() - low.x()))
        middle = (low * 2 + high) / 3
        painter.save()
        painter.translate(middle)
        painter.rotate(angle)
        painter.setPen(QColor(colours.muted))
        words = f"memory: {speed / 1e9:.3g} GB/s"
        painter.drawText(QRectF(-6 * em, -1.3 * em, 12 * em, 1.1 * em), Qt.AlignmentFlag.AlignHCenter, words)
        painter.restore()
        return QRectF(middle.x() - em, middle.y() - em, em, em)

    def _paint_drop(self, painter: QPainter, area: QRectF, point: Point, colours: Colours) -> None:
        """From the chosen point up to what bounds it."""
        known, one = self._reports[point.side].ceilings, point.component
        allowed = one.work.operations / known.floor(one.work, one.precision)
        low = self._place(area, point.intensity, point.reached)
        high = self._place(area, point.intensity, allowed)
        painter.setPen(QPen(QColor(colours.muted), 1.2, Qt.PenStyle.DotLine))
        painter.drawLine(low, high)

    def _paint_point(
        self, painter: QPainter, area: QRectF, point: Point, colours: Colours, at: bool, focused: bool
    ) -> None:
        place, radius = self._place(area, point.intensity, point.reached), self._radius(point)
        fill = QColor(colours.baseline if point.side == "A" else colours.accelerated)
        painter.setPen(QPen(QColor(colours.base), 1.5))
        painter.setBrush(fill)
        if point.side == "A":
            painter.drawEllipse(place, radius, radius)
        else:
            # Told apart without colour, too.
            painter.drawRect(QRectF(place.x() - 0.89 * radius, place.y() - 0.89 * radius, 1.77 * radius, 1.77 * radius))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if at:
            painter.setPen(QPen(QColor(colours.text), 2.2 if focused else 1.4))
            painter.drawEllipse(place, radius + 3, radius + 3)

    def _paint_label(
        self, painter: QPainter, area: QRectF, point: Point, colours: Colours, taken: Sequence[QRectF]
    ) -> QRectF:
        """Beside its point where there is room; a point without any goes without."""
        em, radius = self.fontMetrics().height(), self._radius(point)
        place = self._place(area, point.intensity, point.reached)
        text = label(self._reports[point.side], point.phase, point.component)
        width = self.fontMetrics().horizontalAdvance(text) + 2
        for down in (0.0, 0.9, -0.9, 1.8, -1.8, 2.7, -2.7):
            for left in (place.x() + radius + 0.3 * em, place.x() - radius - 0.3 * em - width):
                spot = QRectF(left, place.y() - 0.5 * em + down * em, width, 0.95 * em)
                inside = area.left() <= spot.left() and spot.right() <= area.right() and spot.top() >= area.top()
                covered = any(
                    spot.contains(self._place(area, one.intensity, one.reached)) for one in self._points if one != point
                )
                if inside and not covered and not any(spot.intersects(one) for one in taken):
                    if abs(down) > 1:
                        painter.setPen(QPen(QColor(colours.border), 1))
                        painter.drawLine(place, QPointF(left if left > place.x() else left + width, spot.center().y()))
                    _clear(painter, spot, colours)
                    painter.setPen(QColor(colours.baseline if point.side == "A" else colours.accelerated))
                    painter.drawText(spot.adjusted(0, -0.3 * em, 4, 0.3 * em), Qt.AlignmentFlag.AlignVCenter, text)
                    return spot
        return QRectF()

    # --- Choosing ----------------------------------------------------------------------------------------------------
    def describe(self, index: int) -> str:
        """A point in words."""
        point = self._points[index]
        report, one = self._reports[point.side], point.component
        known = report.ceilings
        return (
            f"{point.side}: {label(report, point.phase, one)}: {rate(point.reached)} at {point.intensity:.3g} FLOP/B, "
            f"{one.ratio(known):.2f} × the floor, bound by {one.bound(known, point.phase.graphed)}."
        )

    def _describe(self) -> None:
        chosen = 0 <= self._at < len(self._points)
        self.setAccessibleDescription(self.describe(self._at) if chosen else f"{len(self._points)} components")
        self.update()

    def _go_to(self, index: int) -> None:
        self._at = max(0, min(index, len(self._points) - 1))
        self._describe()
        self.chosen.emit(self._points[self._at].side, self._points[self._at].row)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.point_at(event.position())
        if index is None:
            super().mousePressEvent(event)
        else:
            self._go_to(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key not in _MOVES or not self._points:
            super().keyPressEvent(event)
            return
        last = len(self._points) - 1
        moved = {Qt.Key.Key_Left: self._at - 1, Qt.Key.Key_Right: self._at + 1, Qt.Key.Key_Home: 0}
        self._go_to(moved.get(key, last))

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ShortcutOverride and event.key() in _MOVES and not event.modifiers():
            event.accept()
            return True
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = self.point_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), "" if index is None else self.describe(index), self)
            return True
        return super().event(event)


def _precisions(report: RooflineReport) -> tuple[str, ...]:
    """Those that components compute in, float32 first."""
    used = {one.precision for _, one in report.components() if one.precision and one.work.operations}
    return tuple(sorted(used, key=lambda one: (one != "float32", one)))


def _clear(painter: QPainter, spot: QRectF, colours: Colours) -> None:
    """Take lines back behind words."""
    ground = QColor(colours.base)
    ground.setAlpha(215)
    painter.fillRect(spot, ground)


def _distance(one: QPointF, other: QPointF) -> float:
    return math.hypot(one.x() - other.x(), one.y() - other.y())
