"""A painted widget with a keyboard cursor: base of cell grids, layer bars and token strips. It handles its keys before
the window's shortcuts, copies itself as text on Ctrl+C, and describes cursor and mouse position."""

from collections.abc import Iterator

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from paretone_app.shell.colours import Colours
from paretone_app.widgets.screen_readers import CHART

ACTIVATING = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class Painted(QWidget):
    """A widget painted in the colours of the theme."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.colours = colours

    def set_colours(self, colours: Colours) -> None:
        self.colours = colours
        self.update()


class CursorCanvas(Painted):
    screen_role = CHART
    own_keys: tuple[Qt.Key, ...] = ()
    """Keys without modifiers, handled before the window's shortcuts."""
    own_modifiers = Qt.KeyboardModifier.KeypadModifier
    """Modifiers allowed with these keys."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    # --- For subclasses -----------------------------------------------------------------------------------------------
    def cursor_text(self) -> str:
        """Value at the cursor, in words."""
        raise NotImplementedError

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        """Value under the mouse, in words, and its area in the widget; ``None`` if none."""
        raise NotImplementedError

    def as_text(self) -> str:
        raise NotImplementedError

    # --- Shared -------------------------------------------------------------------------------------------------------
    def refresh(self) -> None:
        """Repaint, and announce the value at the cursor to screen readers."""
        self.setAccessibleDescription(self.cursor_text())
        self.update()

    def paint_cursor(self, painter: QPainter, cell: QRectF) -> None:
        """Two rings around ``cell``, one of which contrasts with any colour; thicker with the focus."""
        focused = self.hasFocus()
        for ink, width in ((self.colours.base, 4 if focused else 2), (self.colours.text, 2 if focused else 1)):
            painter.setPen(QPen(QColor(ink), width))
            painter.drawRect(cell.adjusted(-1, -1, 0, 0))

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.as_text())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.ShortcutOverride and self._is_own(event):
            event.accept()
            return True
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            tip = self.tip_at(QPointF(event.pos()))
            if tip is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), tip[0], self, tip[1].toAlignedRect())
            return True
        return super().event(event)

    def _is_own(self, event: QKeyEvent) -> bool:
        if event.matches(QKeySequence.StandardKey.Copy):
            return True
        return not event.modifiers() & ~self.own_modifiers and Qt.Key(event.key()) in self.own_keys


class LineCanvas(CursorCanvas):
    """Lines along time. Subclasses give the number and length of the lines, and the unit of time (seconds, frames)."""

    activated = Signal(int)
    """The user wants playback from this token or frame index."""

    margin, end = 3.2, 1.0
    """Left and right margin of a line, in font heights."""
    per_line: float = 1.0

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self.position: float | None = None

    # --- For subclasses -----------------------------------------------------------------------------------------------
    @property
    def lines(self) -> int:
        raise NotImplementedError

    def line_height(self) -> float:
        """Distance between lines, in pixels."""
        raise NotImplementedError

    def fit_lines(self) -> None:
        """Set :attr:`per_line` for the current width and font."""
        raise NotImplementedError

    def playhead_room(self, line: int) -> QRectF:
        """The part of a line crossed by the playhead."""
        return self.line_rectangle(line)

    # --- Shared -------------------------------------------------------------------------------------------------------
    def set_position(self, position: float | None) -> None:
        """Show the playback position; ``None`` if the take is not played."""
        if position != self.position:
            self.position = position
            self.update()

    def break_lines(self) -> None:
        self.fit_lines()
        self.updateGeometry()
        self.update()

    def line_rectangle(self, line: int) -> QRectF:
        return QRectF(0, line * self.line_height(), self.width(), self.line_height())

    def room(self) -> float:
        """Width between the margins, in pixels."""
        return max(1.0, self.width() - (self.margin + self.end) * self.fontMetrics().height())

    def place(self, at: float, line: int) -> float:
        """Pixel position of ``at`` on a line; may be outside it."""
        start = self.margin * self.fontMetrics().height()
        return start + (at - line * self.per_line) / self.per_line * self.room()

    def lines_in(self, event: QPaintEvent) -> Iterator[int]:
        for line in range(self.lines):
            if self.line_rectangle(line).intersects(QRectF(event.rect())):
                yield line

    def paint_position(self, painter: QPainter) -> None:
        if self.position is None or not 0 <= self.position < self.lines * self.per_line:
            return
        line = int(self.position / self.per_line)
        x, room = round(self.place(self.position, line)), self.playhead_room(line)
        painter.fillRect(QRectF(x - 1, room.top(), 2, room.height()), QColor(self.colours.text))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().height() * 14, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self.break_lines()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.FontChange:
            self.break_lines()
        super().changeEvent(event)
