"""A canvas along time that breaks into lines like text, with a playhead: token strips and canvases of codes."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QEvent, QRectF, QSize, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from paretone_app.plotting.cursor_canvas import CursorCanvas
from paretone_app.shell.colours import Colours


class LineCanvas(CursorCanvas):
    """Subclasses say how long a line is and how many there are. The unit along time is theirs (seconds, frames)."""

    activated = Signal(int)
    """The user wants to hear from the token or frame of this index."""

    margin, end = 3.2, 1.0
    """Room left of a line and right of it, in heights of the font."""
    per_line: float = 1.0
    """Length of a line."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._position: float | None = None

    # --- What subclasses say -----------------------------------------------------------------------------------------
    @property
    def lines(self) -> int:
        """Number of lines."""
        raise NotImplementedError

    def line_height(self) -> float:
        """From one line to the next, in pixels."""
        raise NotImplementedError

    def fit_lines(self) -> None:
        """Set :attr:`per_line` for the present width and font."""
        raise NotImplementedError

    def playhead_room(self, line: int) -> QRectF:
        """Part of a line that the playhead crosses."""
        return self.line_rectangle(line)

    # --- What they share ---------------------------------------------------------------------------------------------
    def set_position(self, position: float | None) -> None:
        """Show where the take is heard; ``None`` if it is not."""
        if position != self._position:
            self._position = position
            self.update()

    def break_lines(self) -> None:
        """Break lines again."""
        self.fit_lines()
        self.updateGeometry()
        self.update()

    def line_rectangle(self, line: int) -> QRectF:
        """The whole line, margins included."""
        return QRectF(0, line * self.line_height(), self.width(), self.line_height())

    def room(self) -> float:
        """Width between the margins, in pixels."""
        return max(1.0, self.width() - (self.margin + self.end) * self.fontMetrics().height())

    def place(self, at: float, line: int) -> float:
        """Position of ``at`` on a line, in pixels; may be beyond its ends."""
        start = self.margin * self.fontMetrics().height()
        return start + (at - line * self.per_line) / self.per_line * self.room()

    def lines_in(self, event: QPaintEvent) -> Iterator[int]:
        """The lines of which a part is to be painted."""
        for line in range(self.lines):
            if self.line_rectangle(line).intersects(QRectF(event.rect())):
                yield line

    def paint_position(self, painter: QPainter) -> None:
        """Paint the playhead, if it is on one of the lines."""
        if self._position is None or not 0 <= self._position < self.lines * self.per_line:
            return
        line = int(self._position / self.per_line)
        x, room = round(self.place(self._position, line)), self.playhead_room(line)
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
