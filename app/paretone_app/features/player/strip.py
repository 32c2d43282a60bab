"""The waveform of what is heard, with a playhead and the part that repeats. A click goes there, a drag repeats a part.

To screen readers it is a slider in hundredths of a second.
"""

from __future__ import annotations

from PySide6.QtCore import QLineF, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget

from paretone_app.audio.sound import Envelope
from paretone_app.shell.colours import Colours
from paretone_app.state.playing import Heard, Origin

_UNITS = 100
"""Steps of the slider in a second."""
_STEPS_OF_ROOM = 1.5
"""A stream's time axis grows by this factor, so that its waveform does not shrink all the time."""
_LEAST_ROOM = 2.0
"""Seconds."""


class WaveStrip(QSlider):
    """One waveform. Methods in, signals out."""

    sought = Signal(float)
    """The user wants to hear from this time on, in seconds."""
    region_drawn = Signal(float, float)
    """The user drew a part to be repeated: start and end in seconds."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._colours = colours
        self._now = Heard()
        self._envelope: Envelope | None = None
        self._gain = 1.0
        self._position = 0.0
        self._pressed: float | None = None
        self._drawn: tuple[float, float] | None = None
        self.setAccessibleName("Position in the waveform, in hundredths of a second")
        self.setToolTip("Click: play from there. Drag: repeat a part.")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.valueChanged.connect(lambda value: self.sought.emit(value / _UNITS))

    # --- Methods in --------------------------------------------------------------------------------------------------
    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.update()

    def set_heard(self, now: Heard) -> None:
        """Show of what is heard what repeats; nothing of a listening test."""
        if now.origin is Origin.TEST:
            now, self._envelope, self._position = Heard(Origin.TEST), None, 0.0
        elif (now.origin, now.key, now.title) != (self._now.origin, self._now.key, self._now.title):
            self._pressed = self._drawn = None
        self._now = now
        with QSignalBlocker(self):
            self.setRange(0, round(now.seconds * _UNITS))
        self.update()

    def set_envelope(self, envelope: Envelope | None, gain: float) -> None:
        """Draw this waveform, as loud as it is played: times ``gain``."""
        self._envelope, self._gain = (None if self._now.origin is Origin.TEST else envelope), gain
        self.update()

    def set_position(self, seconds: float) -> None:
        """Move the playhead. Called 30 times a second; screen readers are told once a second."""
        self._position = seconds
        value = round(seconds * _UNITS)
        if not self._now.sounding or abs(value - self.value()) >= _UNITS:
            with QSignalBlocker(self):
                self.setValue(value)
        self.update()

    @property
    def room(self) -> float:
        """Seconds from the left end to the right one."""
        seconds = max(self._now.seconds, self._envelope.seconds if self._envelope is not None else 0.0)
        if self._now.origin is not Origin.STREAM:
            return max(seconds, 1e-3)
        room = _LEAST_ROOM
        while room < seconds:
            room *= _STEPS_OF_ROOM
        return room

    # --- Painting ----------------------------------------------------------------------------------------------------
    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(12 * em, round(1.4 * em))

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(8 * em, em)

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours, width, height = self._colours, self.width(), self.height()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(colours.base))
            loop = self._drawn or self._now.loop
            if loop is not None:
                band = QColor(colours.accent)
                band.setAlpha(45)
                left, right = (self._place(one) for one in loop)
                painter.fillRect(QRectF(left, 0, right - left, height), band)
                painter.setPen(QPen(QColor(colours.accent), 1.5))
                painter.drawLines([QLineF(one, 0, one, height) for one in (left, right)])
            self._paint_wave(painter)
            if self._now.origin not in (Origin.NOTHING, Origin.TEST):
                x = self._place(self._position)
                painter.fillRect(QRectF(x - 1, 0, 2, height), QColor(colours.danger))
            focused = self.hasFocus()
            painter.setPen(QPen(QColor(colours.accent if focused else colours.border), 2 if focused else 1))
            painter.drawRect(QRectF(0.5, 0.5, width - 1, height - 1))

    def _paint_wave(self, painter: QPainter) -> None:
        middle = self.height() / 2
        painter.setPen(QColor(self._colours.border))
        painter.drawLine(QLineF(0, middle, self.width(), middle))
        envelope = self._envelope
        if envelope is None or not envelope.peak:
            return
        lowest, highest = envelope.columns(self.width(), self.room)
        # Quiet sounds are drawn smaller, but can be seen.
        scale = (middle - 2) / max(envelope.peak * self._gain, 0.25) * self._gain
        heard = self._place(self._position)
        lines = [
            QLineF(x + 0.5, middle - scale * high - 0.5, x + 0.5, middle - scale * low + 0.5)
            for x, (low, high) in enumerate(zip(lowest.tolist(), highest.tolist(), strict=True))
        ]
        colour = QColor(self._wave_colour())
        painter.setPen(colour)
        painter.drawLines(lines[: max(0, round(heard))])
        colour.setAlpha(130)
        painter.setPen(colour)
        painter.drawLines(lines[max(0, round(heard)) :])

    def _wave_colour(self) -> str:
        sides = {"A": self._colours.baseline, "B": self._colours.accelerated}
        return sides.get(self._now.letter, self._colours.text)

    def _place(self, seconds: float) -> float:
        return seconds / self.room * self.width()

    # --- Mouse -------------------------------------------------------------------------------------------------------
    def _at(self, event: QMouseEvent) -> float:
        seconds = event.position().x() / max(1, self.width()) * self.room
        return max(0.0, min(seconds, self._now.seconds))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self._now.seconds:
            self._pressed = event.position().x()
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None or (abs(event.position().x() - self._pressed) < 4 and self._drawn is None):
            return
        start = max(0.0, min(self._pressed / max(1, self.width()) * self.room, self._now.seconds))
        self._drawn = min(start, self._at(event)), max(start, self._at(event))
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, drawn, self._pressed, self._drawn = self._pressed, self._drawn, None, None
        if pressed is None:
            return
        if drawn is None:
            self.sought.emit(self._at(event))
        elif drawn[1] > drawn[0]:
            self.region_drawn.emit(*drawn)
        self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The wheel moves nothing here."""
        event.ignore()
