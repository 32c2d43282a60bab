"""A grid of layers × steps with a cursor. Layers run top-down, steps left to right; both count from 1 in texts, from 0
in the code. Drag or Shift-click for a range; Home and End go to the first and last step, Page Up and Down to the first
and last layer, Shift extends the range, Space or Enter acts on the cell."""

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from paretone_app.numbers import fixed
from paretone_app.plotting.cursor_canvas import ACTIVATING, CursorCanvas
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import text_font

_STEPS = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}
_FAR = 1_000_000
"""Larger than any grid; moves are clipped to the grid."""
MOVES = _STEPS | {
    Qt.Key.Key_Home: (0, -_FAR),
    Qt.Key.Key_End: (0, _FAR),
    Qt.Key.Key_PageUp: (-_FAR, 0),
    Qt.Key.Key_PageDown: (_FAR, 0),
}


class CellGrid(CursorCanvas):
    """The grid, its axes and its cursor. Subclasses paint and describe the cells."""

    cursor_moved = Signal(int, int)
    cell_activated = Signal(int, int)
    """The user clicked (layer, step), or pressed Space or Enter there."""

    own_keys = (*MOVES, *ACTIVATING)
    own_modifiers = CursorCanvas.own_modifiers | Qt.KeyboardModifier.ShiftModifier

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._shape = (0, 0)
        self._times: tuple[float, ...] = ()
        self.cursor_cell = (0, 0)
        self._anchor = (0, 0)
        self._pressed: tuple[int, int] | None = None
        self._known_edges: tuple[list[int], list[int]] | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleDescription(self.empty_text())

    # --- For subclasses -----------------------------------------------------------------------------------------------
    def paint_cells(self, painter: QPainter) -> None:
        raise NotImplementedError

    def describe(self, layer: int, step: int) -> str:
        """Content of a cell, as a sentence for tooltips and screen readers."""
        raise NotImplementedError

    def cell_text(self, layer: int, step: int) -> str:
        """Content of a cell, in the shortest form, for copying."""
        raise NotImplementedError

    def empty_text(self) -> str:
        return ""

    # --- Shape, axes and colours -------------------------------------------------------------------------------------
    @property
    def layers(self) -> int:
        return self._shape[0]

    @property
    def steps(self) -> int:
        return self._shape[1]

    @property
    def times(self) -> tuple[float, ...]:
        """Flow time t at the start of each step; empty if unknown or given for another number of steps."""
        return self._times[: self.steps] if len(self._times) in (self.steps, self.steps + 1) else ()

    def set_shape(self, layers: int, steps: int) -> None:
        """Show this number of layers and steps, none without steps; move the cursor as little as possible."""
        layers, steps = (layers, steps) if layers and steps else (0, 0)
        if (layers, steps) != self._shape:
            self._shape = (layers, steps)
            self.cursor_cell = self._anchor = self._clipped(*self.cursor_cell)
        self.refresh()

    def set_times(self, times: tuple[float, ...]) -> None:
        """Show the flow time of each step on the axis; times for another number of steps wait for :meth:`set_shape`."""
        if tuple(times) != self._times:
            self._times = tuple(times)
            self.refresh()

    def refresh(self) -> None:
        self._known_edges = None
        super().refresh()

    def place_text(self, layer: int, step: int) -> str:
        """Position of a cell in words: ``Layer 3, step 5 (t = 0.143)``."""
        time = f" (t = {fixed(self.times[step], 3)})" if self.times else ""
        return f"Layer {layer + 1}, step {step + 1}{time}"

    # --- Cursor and range --------------------------------------------------------------------------------------------
    def move_cursor(self, layer: int, step: int, extend: bool = False) -> None:
        """Move the cursor to the nearest valid cell; ``extend`` keeps the other end of the range."""
        if not self.layers:
            return
        cell = self._clipped(layer, step)
        if not extend:
            self._anchor = cell
        moved = cell != self.cursor_cell
        self.cursor_cell = cell
        self.refresh()
        if moved:
            self.cursor_moved.emit(*cell)

    def selected(self) -> list[tuple[int, int]]:
        """The cells of the range: the rectangle between its two ends; usually one cell."""
        if not self.layers:
            return []
        layers = sorted((self._anchor[0], self.cursor_cell[0]))
        steps = sorted((self._anchor[1], self.cursor_cell[1]))
        return [(one, other) for one in range(layers[0], layers[1] + 1) for other in range(steps[0], steps[1] + 1)]

    def _clipped(self, layer: int, step: int) -> tuple[int, int]:
        return max(0, min(layer, self.layers - 1)), max(0, min(step, self.steps - 1))

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 36, em * 22)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 12, em * 9)

    def _area(self) -> QRect:
        metrics = self.fontMetrics()
        left = metrics.horizontalAdvance("00 ") + metrics.height() + 6
        bottom = metrics.height() * (3 if self.times else 2) + 8
        return self.rect().adjusted(left, 3, -4, -bottom)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._known_edges = None
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        self._known_edges = None
        super().changeEvent(event)

    def has(self, cell: tuple[int, int] | None) -> bool:
        return cell is not None and 0 <= cell[0] < self.layers and 0 <= cell[1] < self.steps

    def cell_rectangle(self, layer: int, step: int) -> QRect:
        """Rectangle of a cell, including its grid line on the right and at the bottom."""
        columns, rows = self._edges()
        left, top = columns[step], rows[layer]
        return QRect(left, top, columns[step + 1] - left, rows[layer + 1] - top)

    def _edges(self) -> tuple[list[int], list[int]]:
        """Left edges of the columns and top edges of the rows, plus the final edges."""
        if self._known_edges is None:
            area = self._area()
            self._known_edges = (
                [area.left() + one * area.width() // self.steps for one in range(self.steps + 1)],
                [area.top() + one * area.height() // self.layers for one in range(self.layers + 1)],
            )
        return self._known_edges

    def cell_at(self, position: QPointF | QPoint) -> tuple[int, int] | None:
        """(layer, step) at a position in widget coordinates, or ``None`` outside the grid."""
        area = self._area()
        if not self.layers or not area.contains(int(position.x()), int(position.y())):
            return None
        step = int((position.x() - area.left()) * self.steps / area.width())
        layer = int((position.y() - area.top()) * self.layers / area.height())
        # Cell edges are rounded to pixels, so the quotient may be off by one.
        for cell in ((layer, step), (layer, step + 1), (layer + 1, step), (layer + 1, step + 1), (layer, step - 1)):
            cell = self._clipped(*cell)
            if self.cell_rectangle(*cell).contains(int(position.x()), int(position.y())):
                return cell
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            if not self.layers:
                painter.setPen(QColor(self.colours.muted))
                margin = self.fontMetrics().height()
                flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
                painter.drawText(self.rect().adjusted(margin, margin, -margin, -margin), flags, self.empty_text())
                return
            self.paint_cells(painter)
            self._paint_axes(painter)
            self._paint_range(painter)

    def _paint_axes(self, painter: QPainter) -> None:
        metrics, area = self.fontMetrics(), self._area()
        painter.setPen(QColor(self.colours.muted))
        height = metrics.height()
        for layer in _labelled(self.layers, area.height(), height * 1.05):
            cell = self.cell_rectangle(layer, 0)
            box = QRect(height + 2, cell.center().y() - height // 2, area.left() - height - 8, height)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, str(layer + 1))
        times = distinct(self.times)
        width = metrics.horizontalAdvance(f"{times[0]} " if times else "00 ")
        for step in _labelled(self.steps, area.width(), width):
            cell = self.cell_rectangle(0, step)
            box = QRect(cell.center().x() - width, area.bottom() + 4, 2 * width, height)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, str(step + 1))
            if times:
                painter.drawText(box.translated(0, height), Qt.AlignmentFlag.AlignCenter, times[step])
        title = QRect(area.left(), self.height() - height - 1, area.width(), height)
        text = "Step, and flow time t where it starts" if self.times else "Step"
        shortened = metrics.elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(title, Qt.AlignmentFlag.AlignCenter, shortened)
        painter.save()
        painter.translate(0, area.bottom())
        painter.rotate(-90)
        texts = "← Layer, input at the top", "← Layer, input on top", "← Layer"
        text = next((one for one in texts if metrics.horizontalAdvance(one) <= area.height()), "")
        painter.drawText(QRect(0, 0, area.height(), height), Qt.AlignmentFlag.AlignCenter, text)
        painter.restore()

    def _paint_range(self, painter: QPainter) -> None:
        first, last = self.selected()[0], self.selected()[-1]
        around = self.cell_rectangle(*first).united(self.cell_rectangle(*last))
        if first != last:
            painter.setPen(QPen(QColor(self.colours.text), 1, Qt.PenStyle.DashLine))
            painter.drawRect(around.adjusted(0, 0, -1, -1))
        self.paint_cursor(painter, QRectF(self.cell_rectangle(*self.cursor_cell)))

    def letter_font(self) -> QFont | None:
        """A bold font whose capitals fit into every cell; ``None`` if too small to read."""
        area = self._area()
        room = min(area.width() / self.steps, area.height() / self.layers)
        size = min(int(room * 0.72), int(self.fontMetrics().height() * 0.8))
        if size < max(7, int(self.fontMetrics().height() * 0.45)):
            return None
        font = text_font(self.font(), strong=True)
        font.setPixelSize(size)
        return font

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position())
        if cell is None or event.button() is not Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        extend = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self.move_cursor(*cell, extend=extend)
        self._pressed = None if extend else cell

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position())
        if event.buttons() & Qt.MouseButton.LeftButton and cell is not None and cell != self.cursor_cell:
            self.move_cursor(*cell, extend=True)
            self._pressed = None

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        cell, pressed = self.cell_at(event.position()), self._pressed
        self._pressed = None
        if cell is not None and cell == pressed:
            self.cell_activated.emit(*cell)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not self.layers:
            event.ignore()
        elif key in MOVES:
            down, right = MOVES[key]
            extend = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.move_cursor(self.cursor_cell[0] + down, self.cursor_cell[1] + right, extend)
        elif key in ACTIVATING:
            self.cell_activated.emit(*self.cursor_cell)
        else:
            super().keyPressEvent(event)

    def cursor_text(self) -> str:
        return self.describe(*self.cursor_cell) if self.layers else self.empty_text()

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        cell = self.cell_at(place)
        return None if cell is None else (self.describe(*cell), QRectF(self.cell_rectangle(*cell)))

    def as_text(self) -> str:
        """All cells as tab-separated text with a header line, layers and steps counted from 1."""
        steps = range(self.steps)
        lines = [("layer", *(f"step {one + 1}" for one in steps))]
        lines += [("t", *(f"{one:.6g}" for one in self.times))] if self.times else []
        lines += [(str(one + 1), *(self.cell_text(one, step) for step in steps)) for one in range(self.layers)]
        return "\n".join(map("\t".join, lines))


def distinct(times: Sequence[float]) -> list[str]:
    """Times with two decimals, or up to four to distinguish them."""
    texts: list[str] = []
    for places in (2, 3, 4):
        texts = [fixed(one, places) for one in times]
        if len(set(texts)) == len(texts):
            break
    return texts


def _labelled(count: int, room: float, size: float) -> np.ndarray:
    """Indices of the cells with a label, the first included, so that labels of this size do not touch."""
    fits = max(1, int(room / size))
    for stride in (1, 2, 4, 5, 8, 10, 16, 20, 25, 50, 100):
        if (count + stride - 1) // stride <= fits:
            return np.arange(0, count, stride)
    return np.array([0])
