"""The panel of parallel axes, linked with the trade-off view: both show the same points and share the filter. Every
point is a line across all knobs and figures in which points differ.

Mouse: dragging along an axis brushes a range, dragging a range moves it, a double click on an axis clears it; a click
elsewhere chooses the nearest line. Keys: Left and Right go from axis to axis, Up and Down move the upper end of what is
brushed there, with Shift the lower end; Delete clears it, Enter ranks by ear what is left."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from pyqtgraph.Qt.internals import PrimitiveArray
from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QShowEvent,
    QUndoStack,
)
from PySide6.QtWidgets import QScrollArea, QWidget

from paretone.errors import SettingError
from paretone.measure.metrics import HIGHER, LOWER, METRICS, NEITHER
from paretone.models import catalogue
from paretone.setting.setting import Setting
from paretone.techniques import technique
from paretone_app.features.studies.forms import Bound, Span, Within
from paretone_app.features.tradeoff.axes import KNOB_AXES, TradeoffAxis, knob_value, said
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import Filter, Pool, Range
from paretone_app.features.tradeoff.styles import FILLS, PointStyles
from paretone_app.numbers import counted
from paretone_app.plotting.cursor_canvas import CursorCanvas
from paretone_app.plotting.frame import pen
from paretone_app.plotting.scatter import MANY
from paretone_app.results.points import Point
from paretone_app.shell.colours import Colours
from paretone_app.state.editing import Edit
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout

DRAWN = 2000
"""Lines beyond which more cannot be told apart."""
_ROOM = 0.02
"""Room at both ends of an axis, as a share of it, so that a brush can begin beyond the outermost value."""


@dataclass(frozen=True)
class Parallel:
    """What is drawn: ``points`` that pass the filter but for its ranges, and which of them are ``inside`` those."""

    axes: tuple[TradeoffAxis, ...] = ()
    ends: np.ndarray = field(default_factory=lambda: np.empty((0, 2)), repr=False)
    """(axes, 2): lowest and highest value, with some room."""
    points: tuple[Point, ...] = ()
    values: np.ndarray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    """(points, axes), NaN where a point has none."""
    inside: np.ndarray = field(default_factory=lambda: np.empty(0, bool), repr=False)
    ranges: tuple[Range, ...] = ()

    @cached_property
    def heights(self) -> np.ndarray:
        """(points, axes): places on the axes, 0 at the low end and 1 at the high one."""
        low, high = self.ends.T
        return (self.values - low) / (high - low)

    def range_of(self, axis: int) -> Range | None:
        """What is brushed on the axis of this number."""
        return next((one for one in self.ranges if one.axis == self.axes[axis].name), None)

    def brushed(self, axis: int, low: float, high: float) -> tuple[Range, ...]:
        """The ranges with another on the axis of this number, whose ends may be in any order; none if it is empty."""
        name = self.axes[axis].name
        others = tuple(one for one in self.ranges if one.axis != name)
        return others if low == high else (*others, Range(name, min(low, high), max(low, high)))

    def in_words(self, axis: int) -> str:
        """An axis with what is brushed on it, as sentences."""
        column, brush = self.values[:, axis], self.range_of(axis)
        text = f"{self.axes[axis].label(False)}, {said(float(np.nanmin(column)))} to {said(float(np.nanmax(column)))}."
        if brush is not None:
            text += f" Brushed from {said(brush.low)} to {said(brush.high)}."
        kept, total = int(self.inside.sum()), len(self.points)
        return f"{text} {kept} of {counted(total, 'point', 'points')} in all ranges."


def parallel(pool: Pool, chosen: Filter) -> Parallel:
    """Own points of ``pool`` that pass ``chosen``, on every axis on which they differ: knobs first, then figures."""
    places = np.flatnonzero(pool.wanted(replace(chosen, ranges=())) & pool.own)
    axes: list[TradeoffAxis] = []
    columns: list[np.ndarray] = []
    for one in sorted(pool.axes, key=lambda one: not one.knob):
        column = pool.values(one, False)[places, 0]
        known = column[~np.isnan(column)]
        if len(known) and known.max() > known.min():
            axes.append(one)
            columns.append(column)
    values = np.stack(columns, axis=1) if columns else np.empty((len(places), 0))
    return Parallel(
        tuple(axes),
        _ends(values),
        tuple(pool.points[place] for place in places),
        values,
        pool.wanted(chosen)[places],
        tuple(one for one in chosen.ranges if one.axis in {axis.name for axis in axes}),
    )


def _ends(values: np.ndarray) -> np.ndarray:
    if not values.size:
        return np.empty((values.shape[1], 2))
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    room = _ROOM * (high - low)
    return np.stack([low - room, high + room], axis=1)


def nearest(heights: np.ndarray, inside: Sequence[bool] | np.ndarray, at: float, height: float) -> tuple[int, float]:
    """The line, of those ``inside``, that is nearest to ``height`` (0 to 1) at the place ``at`` between axes, such as
    1.5 halfway from the second axis to the third; and how far it is. −1 if there is none."""
    left = int(np.clip(np.floor(at), 0, max(heights.shape[1] - 2, 0)))
    right = min(left + 1, heights.shape[1] - 1)
    share = min(max(at - left, 0.0), 1.0)
    far = np.abs((1 - share) * heights[:, left] + share * heights[:, right] - height)
    far = np.where(np.isnan(far) | ~np.asarray(inside, bool), np.inf, far)
    index = int(far.argmin()) if len(far) else -1
    return (index, float(far[index])) if index >= 0 and np.isfinite(far[index]) else (-1, float("inf"))


def sampled(places: np.ndarray) -> list[int]:
    """``places``, or :data:`DRAWN` of them, evenly."""
    if len(places) > DRAWN:
        places = places[np.linspace(0, len(places) - 1, DRAWN).astype(int)]
    return places.tolist()


_BOUNDED = frozenset(one.name for one in METRICS if one.better != NEITHER)
"""Figures that searches can keep within bounds."""


def within(shown: Parallel) -> Within:
    """The study of the model of the points in all ranges: knobs vary as far as those points do, and the brushed figures
    stay within their ranges. Raises :class:`SettingError` where that is no study."""
    inside = [point for point, is_in in zip(shown.points, shown.inside, strict=True) if is_in]
    models = {one.setting.model for one in inside if one.setting is not None}
    if not shown.ranges or not inside:
        raise SettingError("Brush ranges first: no point lies within." if shown.ranges else "Brush ranges first.")
    if len(models) != 1:
        raise SettingError("The points in all ranges are of several models; choose one above Trade-off.")
    if all(one.id not in models for one in catalogue.MODELS):
        raise SettingError("The model of these points is not there any more, so no study can be made of it.")
    settings = [one.setting for one in inside if one.setting is not None]
    spans = _spans(settings, {one.axis for one in shown.ranges})
    if not spans:
        raise SettingError("The points in all ranges do not differ in any knob, so there is nothing to vary.")
    bounds = tuple(bound for at, axis in enumerate(shown.axes) for bound in _bounds(shown, at, axis))
    return Within(models.pop(), spans, bounds)


def _spans(settings: Sequence[Setting], brushed: Collection[str]) -> tuple[Span, ...]:
    """The knobs that are ``brushed``, or else all in which ``settings`` differ."""
    found = {}
    for axis in KNOB_AXES:
        values = [knob_value(one, axis.technique, axis.knob) for one in settings]
        known = sorted({one for one in values if one is not None})
        without = bool(axis.technique) and any(one.technique(axis.technique) is None for one in settings)
        first = bool(axis.technique) and technique(axis.technique).knobs[0].name == axis.knob
        if len(known) > 1 or (known and without and first):
            found[axis.name] = Span(axis.technique, axis.knob, tuple(known), without)
    chosen = [span for name, span in found.items() if name in brushed]
    return tuple(chosen or found.values())


def _bounds(shown: Parallel, at: int, axis: TradeoffAxis) -> Iterator[Bound]:
    """The ends of a figure's range that leave something out."""
    brush: Range | None = shown.range_of(at)
    if brush is None or axis.name not in _BOUNDED:
        return
    column = shown.values[:, at]
    if brush.high < np.nanmax(column):
        yield Bound(axis.name, "at_most", _outwards(brush.high, math.ceil))
    if brush.low > np.nanmin(column):
        yield Bound(axis.name, "at_least", _outwards(brush.low, math.floor))


def _outwards(value: float, rounded: Callable[[float], int]) -> float:
    """Four digits of ``value``, away from what lies within."""
    if value == 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    return float(f"{rounded(round(value / unit, 6)) * unit:.6g}")


_MOVES = (Qt.Key.Key_Left, Qt.Key.Key_Right)
_ENDS = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}
_ACTIVATING = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_CLEARING = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)
_STEP = 1 / 20
"""By which a key moves an end, as a share of the axis."""
_APART, _TALL, _TOP, _BOTTOM, _GRIP = 8.5, 9.0, 2.6, 1.4, 0.5
"""From axis to axis and the height, at least; room above and below; half the width of a brush: in heights of the
font."""
_CLICK, _DRAG = 0.05, 3.0
"""How far a click may miss a line, as a share of the axis; pixels from which on a press is a brush."""
_FAINT, _CLEAR = 36, 190
"""Opacities of lines outside and inside the ranges, of 255."""


class ParallelAxes(CursorCanvas):
    """Methods in, signals out."""

    ranges_changed = Signal(object)
    """The user brushed: all ranges, a tuple."""
    chosen = Signal(str)
    """The user clicked a line: the key of its point."""

    reached = Signal(int)
    """The cursor went to an axis at this place across, in pixels."""
    activated = Signal()
    """The user wants to hear the points in all ranges."""

    own_keys = (*_MOVES, *_ENDS, *_CLEARING, *_ACTIVATING)
    own_modifiers = Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self.setAccessibleName("Parallel axes")
        self.shown = Parallel()
        self._looks = PointStyles(colours)
        self._current = ""
        self._axis = 0
        """That of the cursor."""
        self._faint: QPixmap | None = None
        self._lines: QPixmap | None = None
        """Lines of all points, and of those in all ranges, as pictures: brushing draws the latter only."""
        self._pressed: tuple[int, float, float | None] | None = None
        """Axis, place on it, and, if a range is moved, where on the axis that began."""
        self._at = QPointF()

    # --- Methods in --------------------------------------------------------------------------------------------------
    def show_points(self, shown: Parallel, looks: PointStyles, current: str) -> None:
        """Show other points or ranges; ``current`` is the key of the point that is looked at."""
        if shown.points != self.shown.points or shown.axes != self.shown.axes:
            self._faint = None
        self.shown, self._looks, self._current = shown, looks, current
        self._axis = min(self._axis, max(len(shown.axes) - 1, 0))
        self._lines = None
        self.updateGeometry()
        self.refresh()

    def show_current(self, key: str) -> None:
        """Another point is looked at."""
        self._current = key
        self.refresh()

    def set_colours(self, colours: Colours) -> None:
        self._faint = None
        super().set_colours(colours)

    def minimumSizeHint(self) -> QSize:
        count = max(len(self.shown.axes), 1)
        return QSize(round(self.width_of_axis * count), round(_TALL * self.fontMetrics().height()))

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()

    # --- In words ----------------------------------------------------------------------------------------------------
    def cursor_text(self) -> str:
        return self.shown.in_words(self._axis) if self.shown.axes else "No two points differ."

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        axis = self._axis_at(place.x())
        if axis is not None:
            one = self.shown.axes[axis]
            return f"{self.shown.in_words(axis)}\n{one.definition}", self._room_of(axis)
        index = self._line_at(place)
        return None if index < 0 else (self.shown.points[index].title, QRectF(place.x() - 4, place.y() - 4, 8, 8))

    def as_text(self) -> str:
        shown = self.shown
        rows = [["setting", *(one.label(False) for one in shown.axes)]]
        rows += [
            [point.title, *("" if math.isnan(value) else said(value) for value in values)]
            for point, values, inside in zip(shown.points, shown.values.tolist(), shown.inside, strict=True)
            if inside
        ]
        return "\n".join("\t".join(row) for row in rows) + "\n"

    # --- Where things are --------------------------------------------------------------------------------------------
    @property
    def area(self) -> QRectF:
        """From the first axis to the last one."""
        em = self.fontMetrics().height()
        side = self.width_of_axis / 2
        return QRectF(0, 0, self.width(), self.height()).adjusted(side, _TOP * em, -side, -_BOTTOM * em)

    @property
    def width_of_axis(self) -> float:
        """Room that an axis needs at least, in pixels."""
        return _APART * self.fontMetrics().height()

    def place(self, axis: float, height: float) -> QPointF:
        """Position of a ``height``, 0 to 1, on an axis, in pixels."""
        area, last = self.area, max(len(self.shown.axes) - 1, 1)
        return QPointF(area.left() + axis / last * area.width(), area.bottom() - height * area.height())

    def height_of(self, axis: int, value: float) -> float:
        """Where a value is on an axis, 0 to 1 within it."""
        low, high = self.shown.ends[axis].tolist()
        return (value - low) / (high - low)

    def _value_at(self, axis: int, height: float) -> float:
        low, high = self.shown.ends[axis].tolist()
        return float(low + min(max(height, 0.0), 1.0) * (high - low))

    def _height_at(self, y: float) -> float:
        return (self.area.bottom() - y) / max(self.area.height(), 1.0)

    def _along(self, x: float) -> float:
        return (x - self.area.left()) / max(self.area.width(), 1.0) * max(len(self.shown.axes) - 1, 1)

    def _axis_at(self, x: float) -> int | None:
        if not self.shown.axes:
            return None
        near = min(max(round(self._along(x)), 0), len(self.shown.axes) - 1)
        return near if abs(self.place(near, 0).x() - x) <= 2 * _GRIP * self.fontMetrics().height() else None

    def _room_of(self, axis: int) -> QRectF:
        grip, area = 2 * _GRIP * self.fontMetrics().height(), self.area
        return QRectF(self.place(axis, 0).x() - grip, area.top(), 2 * grip, area.height())

    def _line_at(self, place: QPointF) -> int:
        shown = self.shown
        if not shown.axes:
            return -1
        index, far = nearest(shown.heights, shown.inside, self._along(place.x()), self._height_at(place.y()))
        return index if far <= _CLICK else -1

    # --- Brushing ----------------------------------------------------------------------------------------------------
    def _brush(self, axis: int, one: float, other: float) -> None:
        """Brush from one height to another."""
        self.ranges_changed.emit(self.shown.brushed(axis, self._value_at(axis, one), self._value_at(axis, other)))

    def clear_axis(self, axis: int) -> None:
        """Brush nothing on an axis any more."""
        if self.shown.range_of(axis) is not None:
            self.ranges_changed.emit(self.shown.brushed(axis, 0.0, 0.0))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, shifted = Qt.Key(event.key()), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if not self.shown.axes:
            super().keyPressEvent(event)
        elif key in _MOVES:
            self._axis = min(max(self._axis + (1 if key == Qt.Key.Key_Right else -1), 0), len(self.shown.axes) - 1)
            self.refresh()
            self.reached.emit(round(self.place(self._axis, 0).x()))
        elif key in _ENDS:
            self._move_end(_ENDS[key] * _STEP, lower=shifted)
        elif key in _CLEARING:
            self.clear_axis(self._axis)
        elif key in _ACTIVATING:
            self.activated.emit()
        else:
            super().keyPressEvent(event)

    def _move_end(self, by: float, lower: bool) -> None:
        brush = self.shown.range_of(self._axis)
        ends = [0.0, 1.0] if brush is None else [self.height_of(self._axis, at) for at in (brush.low, brush.high)]
        low, high = ends[0] + by * lower, ends[1] + by * (not lower)
        if high - low >= _STEP / 2:
            self._brush(self._axis, low, high)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        axis = self._axis_at(event.position().x())
        if event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
        elif axis is not None:
            at, brush = self._height_at(event.position().y()), self.shown.range_of(axis)
            inside = brush is not None and brush.low <= self._value_at(axis, at) <= brush.high
            self._pressed = axis, at, self.height_of(axis, brush.low) if brush is not None and inside else None
            self._at, self._axis = event.position(), axis
            self.refresh()
        else:
            index = self._line_at(event.position())
            if index >= 0:
                self.chosen.emit(self.shown.points[index].key)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        over = self._axis_at(event.position().x()) is not None
        self.setCursor(Qt.CursorShape.SizeVerCursor if over or self._pressed else Qt.CursorShape.ArrowCursor)
        if self._pressed is None or abs(event.position().y() - self._at.y()) < _DRAG:
            return
        axis, began, low = self._pressed
        at = self._height_at(event.position().y())
        brush = self.shown.range_of(axis)
        if low is None or brush is None:
            self._brush(axis, began, at)
        else:
            tall = self.height_of(axis, brush.high) - self.height_of(axis, brush.low)
            low = min(max(low + at - began, 0.0), 1.0 - tall)
            self._brush(axis, low, low + tall)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._pressed = None
        super().mouseReleaseEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        axis = self._axis_at(event.position().x())
        if axis is not None:
            self._pressed = None
            self.clear_axis(axis)

    # --- Painting ----------------------------------------------------------------------------------------------------
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._faint = None
        super().resizeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(event.rect(), QColor(self.colours.base))
            if not self.shown.axes:
                painter.setPen(QColor(self.colours.muted))
                painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.cursor_text())
                return
            if self._faint is None or self._faint.devicePixelRatio() != self.devicePixelRatioF():
                self._faint, self._lines = self._picture(self._all_faint()), None
            if self._lines is None:
                self._lines = self._picture(self._inside())
            painter.drawPixmap(0, 0, self._faint)
            painter.drawPixmap(0, 0, self._lines)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_current(painter)
            for axis in range(len(self.shown.axes)):
                self._paint_axis(painter, axis)

    def _picture(self, strands: Iterable[tuple[QColor, list[int]]]) -> QPixmap:
        """Lines, those of one colour after the other."""
        ratio = self.devicePixelRatioF()
        picture = QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        with QPainter(picture) as painter:
            many = len(self.shown.points) > MANY
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, not many)
            for colour, places in strands:
                painter.setPen(pen(colour, 0.0 if many else 1.2))
                self._draw(painter, places)
        return picture

    def _all_faint(self) -> Iterator[tuple[QColor, list[int]]]:
        ink = QColor(self.colours.muted)
        ink.setAlpha(_FAINT)
        yield ink, sampled(np.arange(len(self.shown.points)))

    def _inside(self) -> Iterator[tuple[QColor, list[int]]]:
        groups: dict[str, list[int]] = defaultdict(list)
        for place in sampled(np.flatnonzero(self.shown.inside)):
            point = self.shown.points[place]
            groups[self._looks.glyph(point.techniques, FILLS[point.kind]).colours[0]].append(place)
        for colour, places in groups.items():
            ink = QColor(colour)
            ink.setAlpha(_CLEAR)
            yield ink, places

    def _draw(self, painter: QPainter, places: list[int]) -> None:
        """Draw lines from axis to axis, none where a value is missing."""
        area, last = self.area, max(len(self.shown.axes) - 1, 1)
        y = area.bottom() - self.shown.heights[places] * area.height()
        x = np.broadcast_to(area.left() + np.arange(y.shape[1]) / last * area.width(), y.shape)
        ends = np.stack([x[:, :-1], y[:, :-1], x[:, 1:], y[:, 1:]], axis=-1).reshape(-1, 4)
        known = ends[~np.isnan(ends).any(axis=1)]
        pieces = PrimitiveArray(QLineF, 4)  # It has to live until they are drawn.
        pieces.resize(len(known))
        pieces.ndarray()[:] = known
        painter.drawLines(*pieces.drawargs())

    def _paint_current(self, painter: QPainter) -> None:
        for place, point in enumerate(self.shown.points):
            if point.key == self._current:
                painter.setPen(pen(self.colours.text, 2.4))
                self._draw(painter, [place])

    def _paint_axis(self, painter: QPainter, axis: int) -> None:
        em, colours, one = self.fontMetrics().height(), self.colours, self.shown.axes[axis]
        low, high = self.place(axis, 0), self.place(axis, 1)
        brush, is_at = self.shown.range_of(axis), axis == self._axis
        painter.setPen(pen(colours.muted, 1.2))
        painter.drawLine(QLineF(low, high))
        if brush is not None:
            ends = [self.place(axis, self.height_of(axis, at)).y() for at in (brush.low, brush.high)]
            fill = QColor(colours.accent)
            painter.setPen(pen(fill, 1.2))
            fill.setAlpha(70)
            painter.setBrush(fill)
            painter.drawRect(QRectF(low.x() - _GRIP * em, ends[1], 2 * _GRIP * em, ends[0] - ends[1]))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            for at, y in zip((brush.low, brush.high), ends, strict=True):
                painter.drawText(QPointF(low.x() + (_GRIP + 0.3) * em, y + 0.3 * em), said(at))
        apart = self.place(1, 0).x() - self.place(0, 0).x() if len(self.shown.axes) > 1 else self.width_of_axis
        room = QRectF(low.x() - apart / 2, 0, apart, _TOP * em)
        painter.setPen(QColor(colours.accent if is_at else colours.text))
        arrow = {HIGHER: " ↑", LOWER: " ↓"}.get(one.better, "")
        title = painter.fontMetrics().elidedText(
            one.title + arrow, Qt.TextElideMode.ElideMiddle, round(room.width() - 6)
        )
        painter.drawText(room.adjusted(0, 0, 0, -_TOP * em / 2), Qt.AlignmentFlag.AlignCenter, title)
        painter.setPen(QColor(colours.muted))
        top, bottom = room.adjusted(0, _TOP * em / 2, 0, 0), QRectF(room.x(), low.y(), room.width(), _BOTTOM * em)
        column = self.shown.values[:, axis]
        for value, where in ((np.nanmin(column), bottom), (np.nanmax(column), top)):
            painter.drawText(where, Qt.AlignmentFlag.AlignCenter, said(float(value)))
        if is_at and self.hasFocus():
            painter.setPen(pen(colours.accent, 2))
            painter.drawLine(QLineF(room.left() + em, room.bottom() - 2, room.right() - em, room.bottom() - 2))


_FIRST_ID = 10_000
"""Ids of edits that are merged, from here on: one for each brush."""
_PAUSE_MILLISECONDS = 600
"""Pause after which another change is another brush."""


class ParallelPanel(QWidget):
    """Shows the points of a :class:`TradeoffPanel`, and filters them by ranges."""

    shown = Signal()
    """The panel can be seen from now on."""
    rank_wanted = Signal()
    """Rank the points in all ranges by ear, blind."""
    study_wanted = Signal()
    """Make a study within the ranges."""

    def __init__(self, colours: Colours, undo_stack: QUndoStack, parent: QWidget | None = None) -> None:
        """What is brushed can be undone by ``undo_stack``."""
        super().__init__(parent)
        self._colours = colours
        self._undo_stack = undo_stack
        self._brushes = _FIRST_ID
        self._goes_on = QTimer(self, singleShot=True, interval=_PAUSE_MILLISECONDS)
        """While it runs, a brush goes on that began before."""
        self._tradeoff: TradeoffPanel | None = None
        self.axes = ParallelAxes(colours)
        area = QScrollArea()
        area.setWidget(self.axes)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._counts = build.label(look="muted", name="What is brushed")
        self.clear_button = build.button("Clear ranges", lambda: self._brush(()), "Brush nothing on any axis")
        self.rank_button = build.button(
            "Rank by ear…", self.rank_wanted, "Hear the points in all ranges blind, in pairs, and rank them (Enter)"
        )
        self.study_button = build.button("Study within…", self.study_wanted)
        foot = HBoxLayout()
        foot.addWidget(self._counts, 1)
        foot.addWidget(self.study_button)
        foot.addWidget(self.rank_button)
        foot.addWidget(self.clear_button)
        build.fill(VBoxLayout(self), ((area, 1), foot))
        self.setFocusProxy(self.axes)
        self.axes.ranges_changed.connect(self._brush)
        self.axes.chosen.connect(self._choose)
        self.axes.activated.connect(self.rank_wanted)
        self.axes.reached.connect(lambda x: area.ensureVisible(x, 0, round(self.axes.width_of_axis), 0))

    def follow(self, tradeoff: TradeoffPanel | None) -> None:
        """Show the points of ``tradeoff`` from now on; ``None`` if there is none yet."""
        self._tradeoff = tradeoff
        if tradeoff is not None:
            tradeoff.scene_changed.connect(self.refresh)
            tradeoff.chosen.connect(self._show_current)
            self.refresh()

    def refresh(self) -> None:
        """The trade-off view shows something else."""
        tradeoff = self._tradeoff
        if tradeoff is None or not self.isVisible():
            return
        shown, current = parallel(tradeoff.pool, tradeoff.filter), tradeoff.plot.current
        looks = PointStyles(self._colours)
        self.axes.show_points(shown, looks, "" if current is None else current.key)
        kept, total = int(shown.inside.sum()), counted(len(shown.points), "point", "points")
        text = f"{kept} of {total} in all ranges" if shown.ranges else f"{total}; drag along an axis"
        self._counts.setText(text + (f" ({DRAWN} lines drawn)" if len(shown.points) > DRAWN else ""))
        reason = "" if shown.ranges else "Nothing is brushed."
        build.allow(self.clear_button, reason, "Brush nothing on any axis")
        build.allow(self.study_button, reason, "A new study: knobs as far as brushed, figures within their ranges")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
        self.shown.emit()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.axes.set_colours(colours)
        self.refresh()

    def _show_current(self, current: Point | None) -> None:
        self.axes.show_current("" if current is None else current.key)

    def _brush(self, ranges: tuple[Range, ...]) -> None:
        if self._tradeoff is None or ranges == self._tradeoff.filter.ranges:
            return
        if not self._goes_on.isActive():
            self._brushes += 1
        self._goes_on.start()
        text = "brush ranges" if ranges else "clear ranges"
        self._undo_stack.push(Edit(text, self._tradeoff.filter.ranges, ranges, self._put, self._brushes))

    def _put(self, ranges: tuple[Range, ...]) -> None:
        if self._tradeoff is not None:
            self._tradeoff.set_filter(replace(self._tradeoff.filter, ranges=ranges))

    def _choose(self, key: str) -> None:
        if self._tradeoff is not None:
            self._tradeoff.plot.take_selection({key})
