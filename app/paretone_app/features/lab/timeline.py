"""Timeline with position and loop. It shows nothing of the sound itself, which could identify it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from paretone_app.shell.colours import Colours
from paretone_app.widgets.screen_readers import CHART

_DRAG_PIXELS = 4


class TimeLine(QWidget):
    """Click to seek, drag to choose what repeats."""

    screen_role = CHART

    sought = Signal(float)
    """Seconds."""
    region_drawn = Signal(float, float)
    """From and to, in seconds."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._seconds = self._position = 0.0
        self._loop: tuple[float, float] | None = None
        self._pressed: float | None = None
        self._dragged: float | None = None
        self.setAccessibleName("Position and loop")
        self.setToolTip("Click to seek; drag to loop a section")

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.update()

    def show_sound(self, seconds: float) -> None:
        """Show a sound of this length, from its beginning."""
        self._seconds, self._position, self._loop = seconds, 0.0, None
        self.update()

    def show_position(self, seconds: float) -> None:
        """Show where the sound is. Called 30 times a second."""
        if seconds != self._position:
            self._position = seconds
            self.update()

    def show_loop(self, loop: tuple[float, float] | None) -> None:
        """Show what repeats, in seconds."""
        self._loop = loop
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, 2 * self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.fontMetrics().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            whole = QRectF(self.rect()).adjusted(1, 3, -1, -3)
            painter.setBrush(QColor(self._colours.raised))
            painter.drawRoundedRect(whole, 4, 4)
            loop = self._loop
            if self._pressed is not None and self._dragged is not None:
                first, last = sorted((self._pressed, self._dragged))
                loop = self._at(first), self._at(last)
            if loop is not None and self._seconds > 0:
                shade = QColor(self._colours.accent)
                shade.setAlphaF(0.35)
                painter.setBrush(shade)
                left, right = self._x(loop[0]), self._x(loop[1])
                painter.drawRect(QRectF(left, whole.top(), max(1.0, right - left), whole.height()))
            if self._seconds > 0:
                painter.setBrush(QColor(self._colours.text))
                painter.drawRect(QRectF(self._x(self._position) - 1, whole.top() - 2, 2, whole.height() + 4))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._pressed, self._dragged = event.position().x(), None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is not None and abs(event.position().x() - self._pressed) >= _DRAG_PIXELS:
            self._dragged = event.position().x()
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, dragged = self._pressed, self._dragged
        self._pressed = self._dragged = None
        if pressed is None or self._seconds <= 0:
            return
        if dragged is None:
            self.sought.emit(self._at(pressed))
        else:
            first, last = sorted((self._at(pressed), self._at(dragged)))
            self.region_drawn.emit(first, last)
        self.update()

    def _x(self, seconds: float) -> float:
        return 1 + (self.width() - 2) * min(1.0, seconds / self._seconds)

    def _at(self, x: float) -> float:
        return self._seconds * min(1.0, max(0.0, (x - 1) / max(1, self.width() - 2)))
