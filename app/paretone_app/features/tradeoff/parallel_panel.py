"""Parallel axes: each point of the trade-off view as a line across all knobs and figures in which points differ.

Mouse: dragging along an axis brushes a range, dragging a range moves it, a double click on an axis clears it; a click
elsewhere chooses the nearest line. Keys: the feature's ``keys``; Delete clears a range, Enter ranks the rest by ear."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from pyqtgraph.Qt.internals import PrimitiveArray
from PySide6 import QtGui
from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QScrollArea

from paretone_app.features.tradeoff.axes import ARROWS
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.parallel import DRAWN, Parallel, nearest, parallel, sampled
from paretone_app.features.tradeoff.scene import Range
from paretone_app.features.tradeoff.styles import PointStyles
from paretone_app.numbers import counted
from paretone_app.plotting.cursor_canvas import CursorCanvas
from paretone_app.plotting.frame import pen
from paretone_app.plotting.scatter import MANY
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR
from paretone_app.state.editing import Edit
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.panel_parts import ShownPanel

_MOVES = (Qt.Key.Key_Left, Qt.Key.Key_Right)
_ENDS = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}
_ACTIVATING = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_CLEARING = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)
_STEP = 1 / 20  # Key step, as a share of the axis.
_APART, _TALL, _TOP, _BOTTOM, _GRIP = 8.5, 9.0, 2.6, 1.4, 0.5
"""In font heights: least distance of axes and height; margins above and below; half the width of a brush."""
_CLICK, _DRAG = 0.05, 3.0
"""Largest distance of a click from a line, as a share of the axis; pixels before a press becomes a brush."""
_FAINT, _CLEAR = 36, 190  # Alpha (of 255) of lines outside and inside the ranges.


class ParallelAxes(CursorCanvas):
    ranges_changed = Signal(object)
    """The user brushed: tuple of all ranges."""
    chosen = Signal(str)
    """The user clicked a line: its point's key."""
    reached = Signal(int)
    """The cursor moved to an axis: its x position in pixels."""
    activated = Signal()
    """The user wants to rank the points in all ranges by ear."""

    own_keys = (*_MOVES, *_ENDS, *_CLEARING, *_ACTIVATING)
    own_modifiers = Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self.setAccessibleName("Parallel axes")
        self.shown = Parallel()
        self._looks = PointStyles(colours)
        self.current = ""
        self._axis = 0  # Axis with the cursor.
        self._faint: QtGui.QPixmap | None = None
        self._lines: QtGui.QPixmap | None = None
        """Lines of all points, and of those in all ranges, as pictures: brushing redraws only the latter."""
        self._pressed: tuple[int, float, float | None] | None = None
        """Pressed axis, height, and the moved range's low end, or ``None`` for a new range."""
        self._at = QPointF()

    def show_points(self, shown: Parallel, looks: PointStyles, current: str) -> None:
        """Show these points and ranges; ``current``: key of the current point."""
        if shown.points != self.shown.points or shown.axes != self.shown.axes:
            self._faint = None
        self.shown, self._looks, self.current = shown, looks, current
        self._axis = min(self._axis, max(len(shown.axes) - 1, 0))
        self._lines = None
        self.updateGeometry()
        self.refresh()

    def show_current(self, key: str) -> None:
        self.current = key
        self.refresh()

    def set_colours(self, colours: Colours) -> None:
        self._faint = None
        super().set_colours(colours)

    def minimumSizeHint(self) -> QSize:
        count = max(len(self.shown.axes), 1)
        return QSize(round(self.width_of_axis * count), round(_TALL * self.fontMetrics().height()))

    sizeHint = minimumSizeHint

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
        rows = [["setting", *(one.label for one in shown.axes)]]
        for place in np.flatnonzero(shown.inside):
            values = zip(shown.axes, shown.values[place].tolist(), strict=True)
            figures = ("" if math.isnan(value) else one.spelt(value) for one, value in values)
            rows.append([shown.points[place].title, *figures])
        return "\n".join("\t".join(row) for row in rows) + "\n"

    @property
    def area(self) -> QRectF:
        """From the first axis to the last."""
        em, side = self.fontMetrics().height(), self.width_of_axis / 2
        return QRectF(self.rect()).adjusted(side, _TOP * em, -side, -_BOTTOM * em)

    @property
    def width_of_axis(self) -> float:
        """Least width of an axis, in pixels."""
        return _APART * self.fontMetrics().height()

    def place(self, axis: float, height: float) -> QPointF:
        """Pixel position of ``height`` (0 to 1) on an axis."""
        area, last = self.area, max(len(self.shown.axes) - 1, 1)
        return QPointF(area.left() + axis / last * area.width(), area.bottom() - height * area.height())

    def _height_at(self, y: float) -> float:
        return (self.area.bottom() - y) / max(self.area.height(), 1.0)

    def _along(self, x: float) -> float:
        return (x - self.area.left()) / max(self.area.width(), 1.0) * max(len(self.shown.axes) - 1, 1)

    def _axis_at(self, x: float) -> int | None:
        near = min(max(round(self._along(x)), 0), len(self.shown.axes) - 1)
        room = self._room_of(near)
        return near if self.shown.axes and room.left() <= x <= room.right() else None

    def _room_of(self, axis: int) -> QRectF:
        grip, area = 2 * _GRIP * self.fontMetrics().height(), self.area
        return QRectF(self.place(axis, 0).x() - grip, area.top(), 2 * grip, area.height())

    def _line_at(self, place: QPointF) -> int:
        shown = self.shown
        if not shown.axes:
            return -1
        index, far = nearest(shown.heights, shown.inside, self._along(place.x()), self._height_at(place.y()))
        return index if far <= _CLICK else -1

    # --- Brushing -----------------------------------------------------------------------------------------------------
    def _brush(self, axis: int, one: float, other: float) -> None:
        """Brush from height ``one`` to ``other``."""
        low, high = self.shown.ends[axis].tolist()
        ends = (low + min(max(at, 0.0), 1.0) * (high - low) for at in (one, other))
        self.ranges_changed.emit(self.shown.brushed(axis, *ends))

    def clear_axis(self, axis: int) -> None:
        if self.shown.range_of(axis) is not None:
            self.ranges_changed.emit(self.shown.brushed(axis, 0.0, 0.0))

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        key, shifted = Qt.Key(event.key()), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if not self.shown.axes:
            super().keyPressEvent(event)
        elif key in _MOVES:
            self._axis = min(max(self._axis + (1 if key == Qt.Key.Key_Right else -1), 0), len(self.shown.axes) - 1)
            self.refresh()
            self.reached.emit(round(self.place(self._axis, 0).x()))
        elif key in _ENDS:
            low, high = self.shown.brush(self._axis) or (0.0, 1.0)
            by = _ENDS[key] * _STEP
            low, high = (low + by, high) if shifted else (low, high + by)
            if high - low >= _STEP / 2:
                self._brush(self._axis, low, high)
        elif key in _CLEARING:
            self.clear_axis(self._axis)
        elif key in _ACTIVATING:
            self.activated.emit()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:
        axis = self._axis_at(event.position().x())
        if event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
        elif axis is not None:
            at, brush = self._height_at(event.position().y()), self.shown.brush(axis)
            self._pressed = axis, at, brush[0] if brush is not None and brush[0] <= at <= brush[1] else None
            self._at, self._axis = event.position(), axis
            self.refresh()
        else:
            index = self._line_at(event.position())
            if index >= 0:
                self.chosen.emit(self.shown.points[index].key)

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:
        over = self._axis_at(event.position().x()) is not None
        self.setCursor(Qt.CursorShape.SizeVerCursor if over or self._pressed else Qt.CursorShape.ArrowCursor)
        if self._pressed is None or abs(event.position().y() - self._at.y()) < _DRAG:
            return
        axis, began, low = self._pressed
        at, brush = self._height_at(event.position().y()), self.shown.brush(axis)
        if low is None or brush is None:
            self._brush(axis, began, at)
        else:
            tall = brush[1] - brush[0]
            low = min(max(low + at - began, 0.0), 1.0 - tall)
            self._brush(axis, low, low + tall)

    def mouseReleaseEvent(self, event: QtGui.QMouseEvent) -> None:
        self._pressed = None
        super().mouseReleaseEvent(event)

    def mouseDoubleClickEvent(self, event: QtGui.QMouseEvent) -> None:
        axis = self._axis_at(event.position().x())
        if axis is not None:
            self._pressed = None
            self.clear_axis(axis)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._faint = None
        super().resizeEvent(event)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        with QtGui.QPainter(self) as painter:
            painter.fillRect(event.rect(), QtGui.QColor(self.colours.base))
            if not self.shown.axes:
                painter.setPen(QtGui.QColor(self.colours.muted))
                painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.cursor_text())
                return
            if self._faint is None or self._faint.devicePixelRatio() != self.devicePixelRatioF():
                every = sampled(np.arange(len(self.shown.points)))
                self._faint, self._lines = self._picture([(_ink(self.colours.muted, _FAINT), every)]), None
            if self._lines is None:
                self._lines = self._picture(self._inside())
            painter.drawPixmap(0, 0, self._faint)
            painter.drawPixmap(0, 0, self._lines)
            painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
            painter.setPen(pen(self.colours.text, 2.4))
            self._draw(painter, [at for at, point in enumerate(self.shown.points) if point.key == self.current])
            for axis in range(len(self.shown.axes)):
                self._paint_axis(painter, axis)

    def _picture(self, strands: Iterable[tuple[QtGui.QColor, list[int]]]) -> QtGui.QPixmap:
        ratio = self.devicePixelRatioF()
        picture = QtGui.QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        with QtGui.QPainter(picture) as painter:
            many = len(self.shown.points) > MANY
            painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing, not many)
            for colour, places in strands:
                painter.setPen(pen(colour, 0.0 if many else 1.2))
                self._draw(painter, places)
        return picture

    def _inside(self) -> list[tuple[QtGui.QColor, list[int]]]:
        """Places of the lines in all ranges, by colour."""
        groups: dict[str, list[int]] = defaultdict(list)
        for place in sampled(np.flatnonzero(self.shown.inside)):
            groups[self._looks.of(self.shown.points[place]).colours[0]].append(place)
        return [(_ink(colour, _CLEAR), places) for colour, places in groups.items()]

    def _draw(self, painter: QtGui.QPainter, places: list[int]) -> None:
        """Draw lines from axis to axis, with gaps at missing values."""
        area, last = self.area, max(len(self.shown.axes) - 1, 1)
        y = area.bottom() - self.shown.heights[places] * area.height()
        x = np.broadcast_to(area.left() + np.arange(y.shape[1]) / last * area.width(), y.shape)
        ends = np.stack([x[:, :-1], y[:, :-1], x[:, 1:], y[:, 1:]], axis=-1).reshape(-1, 4)
        known = ends[~np.isnan(ends).any(axis=1)]
        pieces = PrimitiveArray(QLineF, 4)  # Must live until they are drawn.
        pieces.resize(len(known))
        pieces.ndarray()[:] = known
        if len(known):
            painter.drawLines(*pieces.drawargs())

    def _paint_axis(self, painter: QtGui.QPainter, axis: int) -> None:
        em, colours, one = self.fontMetrics().height(), self.colours, self.shown.axes[axis]
        low, high = self.place(axis, 0), self.place(axis, 1)
        brush, heights, is_at = self.shown.range_of(axis), self.shown.brush(axis), axis == self._axis
        painter.setPen(pen(colours.muted, 1.2))
        painter.drawLine(QLineF(low, high))
        if brush is not None and heights is not None:
            ends = [self.place(axis, at).y() for at in heights]
            painter.setPen(pen(colours.accent, 1.2))
            painter.setBrush(_ink(colours.accent, 70))
            painter.drawRect(QRectF(low.x() - _GRIP * em, ends[1], 2 * _GRIP * em, ends[0] - ends[1]))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            for at, y in zip((brush.low, brush.high), ends, strict=True):
                painter.drawText(QPointF(low.x() + (_GRIP + 0.3) * em, y + 0.3 * em), one.said(at))
        apart = self.place(1, 0).x() - self.place(0, 0).x() if len(self.shown.axes) > 1 else self.width_of_axis
        room = QRectF(low.x() - apart / 2, 0, apart, _TOP * em)
        painter.setPen(QtGui.QColor(colours.accent if is_at else colours.text))
        title = one.title + ARROWS.get(one.better, "")
        title = painter.fontMetrics().elidedText(title, Qt.TextElideMode.ElideMiddle, round(room.width() - 6))
        painter.drawText(room.adjusted(0, 0, 0, -_TOP * em / 2), Qt.AlignmentFlag.AlignCenter, title)
        painter.setPen(QtGui.QColor(colours.muted))
        top, bottom = room.adjusted(0, _TOP * em / 2, 0, 0), QRectF(room.x(), low.y(), room.width(), _BOTTOM * em)
        column = self.shown.values[:, axis]
        for value, where in ((np.nanmin(column), bottom), (np.nanmax(column), top)):
            painter.drawText(where, Qt.AlignmentFlag.AlignCenter, one.said(float(value)))
        if is_at and self.hasFocus():
            painter.setPen(pen(colours.accent, 2))
            painter.drawLine(QLineF(room.left() + em, room.bottom() - 2, room.right() - em, room.bottom() - 2))


def _ink(colour: str, alpha: int) -> QtGui.QColor:
    made = QtGui.QColor(colour)
    made.setAlpha(alpha)
    return made


class ParallelPanel(ShownPanel):
    """Shows the points of a :class:`TradeoffPanel`, and filters them by ranges."""

    def __init__(self, colours: Colours, undo_stack: QtGui.QUndoStack, rank: Action, study: Action) -> None:
        """``rank`` ranks the points in all ranges by ear; ``study`` makes a study within the ranges."""
        super().__init__()
        self._clear = Action("Clear ranges", "Brush nothing on any axis", parent=self)
        self._clear.triggered.connect(lambda: self._brush(()))
        self._colours = colours
        self._undo_stack = undo_stack
        self._brushes = 10_000  # Id of merged edits: one per brush.
        self._goes_on = QTimer(self, singleShot=True, interval=600)
        """While it runs, a change belongs to the present brush."""
        self._tradeoff: TradeoffPanel | None = None
        self.axes = ParallelAxes(colours)
        area = QScrollArea(widgetResizable=True)
        area.setWidget(self.axes)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.counts = build.label(look="muted", name="What is brushed")
        self.clear_button = ActionButton(self._clear)
        self.study_button, self.rank_button = ActionButton(study, "Study within…"), ActionButton(rank, "Rank by ear…")
        foot = build.row((self.counts, 1), self.study_button, self.rank_button, self.clear_button)
        build.fill(VBoxLayout(self), ((area, 1), foot), (GAP, 0, GAP, NEAR))
        self.setFocusProxy(self.axes)
        self.axes.ranges_changed.connect(self._brush)
        self.axes.chosen.connect(self._choose)
        self.axes.reached.connect(lambda x: area.ensureVisible(x, 0, round(self.axes.width_of_axis), 0))

    def follow(self, tradeoff: TradeoffPanel | None) -> None:
        self._tradeoff = tradeoff
        if tradeoff is not None:
            tradeoff.scene_changed.connect(self.refresh)
            tradeoff.chosen.connect(lambda point: self.axes.show_current("" if point is None else point.key))
            self.refresh()

    def refresh(self) -> None:
        self.when_seen(self._refresh)

    def _refresh(self) -> None:
        tradeoff = self._tradeoff
        if tradeoff is None:
            return
        shown, current = parallel(tradeoff.pool, tradeoff.filter), tradeoff.plot.current
        self.axes.show_points(shown, PointStyles(self._colours), "" if current is None else current.key)
        kept, total = int(shown.inside.sum()), counted(len(shown.points), "point", "points")
        text = f"{kept} of {total} in all ranges" if shown.ranges else f"{total}; drag along an axis"
        self.counts.setText(text + (f" ({DRAWN} lines drawn)" if len(shown.points) > DRAWN else ""))
        self._clear.set_reason("" if shown.ranges else "Nothing is brushed.")

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.axes.set_colours(colours)
        self.refresh()

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
