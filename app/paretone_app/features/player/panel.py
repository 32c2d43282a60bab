"""The player's bar, which knows neither player nor state: the current sound with its waveform, and the controls."""

import html
from collections.abc import Collection, Mapping, Sequence
from textwrap import fill

from PySide6.QtCore import QEvent, QLineF, QObject, QRect, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QCheckBox, QLabel, QSizePolicy, QSlider, QStackedWidget, QWidget

from paretone.checks.faults import Checked, fault
from paretone_app.audio.sound import Envelope
from paretone_app.numbers import counted, fixed
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR, bold_font, icon, pixmap, set_look
from paretone_app.shell.workspaces import recolour
from paretone_app.state.playing import SIDES, Heard, Origin
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.screen_readers import GROUP
from paretone_app.widgets.side_panel import SideButtons

_UNITS = 100
"""Slider steps per second."""
_HOW = "Click: play from there. Drag: repeat a part."


class WaveStrip(QSlider):
    sought = Signal(float)
    region_drawn = Signal(float, float)
    """A loop was drawn: start and end in seconds."""

    def __init__(self, colours: Colours) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._colours = colours
        self._now = Heard()
        self._envelope: Envelope | None = None
        self._gain = 1.0
        self._position = 0.0
        self._pressed: float | None = None
        self._drawn: tuple[float, float] | None = None
        self._checked = Checked()
        self._wave: tuple[object, list[QLineF]] = None, []
        """What the waveform was computed of, and its lines, one per pixel."""
        self.setAccessibleName("Position in the waveform, in hundredths of a second")
        self.setToolTip(_HOW)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.valueChanged.connect(lambda value: self.sought.emit(value / _UNITS))

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.update()

    def set_heard(self, now: Heard) -> None:
        """Show the length and loop of the current sound; nothing during a listening test."""
        if now.origin is Origin.TEST:
            now, self._envelope, self._position = Heard(Origin.TEST), None, 0.0
        elif (now.origin, now.key, now.title) != (self._now.origin, self._now.key, self._now.title):
            self._pressed = self._drawn = None
        self._now = now
        with QSignalBlocker(self):
            self.setRange(0, round(now.seconds * _UNITS))
        self.update()

    def set_envelope(self, envelope: Envelope | None, gain: float) -> None:
        self._envelope, self._gain = (None if self._now.origin is Origin.TEST else envelope), gain
        self.update()

    def set_faults(self, checked: Checked) -> None:
        """Mark these faults; F goes to the next one."""
        if checked != self._checked:
            self._checked = checked
            named = [(one, fault(one.fault)) for one in checked.findings]
            lines = [f"{fixed(one.start, 2)} s: {kind.title}. {one.sentence}" for one, kind in named]
            why = dict.fromkeys(f"{kind.title}: {kind.about}" for _, kind in named)
            told = [*lines, *why, *checked.unavailable]
            key = ["F: go to the next fault."] if lines else []
            self.setToolTip("\n".join([_HOW, *([""] if told else []), *(fill(one, 100) for one in told), *key]))
            count = [f"{counted(len(lines), 'fault', 'faults')}:"] if lines else []
            self.setAccessibleDescription(" ".join([*count, *told]))
            self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() != Qt.Key.Key_F or not self._checked.findings:
            super().keyPressEvent(event)
            return
        starts = [one.start for one in self._checked.findings]
        self.sought.emit(min((one for one in starts if one > self._position + 0.01), default=min(starts)))

    def set_position(self, seconds: float) -> None:
        """Move the playhead. Called 30 times a second; screen readers are told once a second."""
        before, self._position = self._position, seconds
        value = round(seconds * _UNITS)
        if not self._now.sounding or abs(value - self.value()) >= _UNITS:
            with QSignalBlocker(self):
                self.setValue(value)
        left, right = sorted(map(self._place, (before, seconds)))
        self.update(QRect(int(left) - 2, 0, int(right - left) + 5, self.height()))

    @property
    def room(self) -> float:
        """Visible time span, in seconds."""
        seconds = max(self._now.seconds, self._envelope.seconds if self._envelope is not None else 0.0)
        if self._now.origin is not Origin.STREAM:
            return max(seconds, 1e-3)
        room = 2.0
        while room < seconds:
            room *= 1.5  # In steps, so that a stream's waveform does not shrink all the time.
        return room

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(12 * em, round(1.4 * em))

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(8 * em, em)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, width, height = self._colours, self.width(), self.height()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(colours.base))
            if (loop := self._drawn or self._now.loop) is not None:
                band = QColor(colours.accent)
                band.setAlpha(45)
                left, right = (self._place(one) for one in loop)
                painter.fillRect(QRectF(left, 0, right - left, height), band)
                painter.setPen(QPen(QColor(colours.accent), 1.5))
                painter.drawLines([QLineF(one, 0, one, height) for one in (left, right)])
            self._paint_wave(painter, event.rect())
            self._paint_faults(painter)
            if self._now.origin not in (Origin.NOTHING, Origin.TEST):
                painter.fillRect(QRectF(self._place(self._position) - 1, 0, 2, height), QColor(colours.danger))
            focused = self.hasFocus()
            painter.setPen(QPen(QColor(colours.accent if focused else colours.border), 2 if focused else 1))
            painter.drawRect(QRectF(0.5, 0.5, width - 1, height - 1))

    def _paint_wave(self, painter: QPainter, seen: QRect) -> None:
        middle = self.height() / 2
        painter.setPen(QColor(self._colours.border))
        painter.drawLine(QLineF(0, middle, self.width(), middle))
        if (envelope := self._envelope) is None or not envelope.length:
            return
        of = envelope, envelope.length, self._gain, self.room, self.size()
        if of != self._wave[0]:
            self._wave = of, self._lines(envelope)
        lines, heard = self._wave[1], max(0, round(self._place(self._position)))
        first, end = max(0, seen.left()), seen.right() + 1
        sides = {"A": self._colours.baseline, "B": self._colours.accelerated}
        colour = QColor(sides.get(self._now.letter, self._colours.text))
        painter.setPen(colour)
        painter.drawLines(lines[first : min(heard, end)])
        colour.setAlpha(130)
        painter.setPen(colour)
        painter.drawLines(lines[max(heard, first) : end])

    def _lines(self, envelope: Envelope) -> list[QLineF]:
        if not envelope.peak:
            return []
        middle = self.height() / 2
        lowest, highest = envelope.columns(self.width(), self.room)
        # Quiet sounds are drawn smaller, but visibly.
        scale = (middle - 2) / max(envelope.peak * self._gain, 0.25) * self._gain
        return [
            QLineF(x + 0.5, middle - scale * high - 0.5, x + 0.5, middle - scale * low + 0.5)
            for x, (low, high) in enumerate(zip(lowest.tolist(), highest.tolist(), strict=True))
        ]

    def _paint_faults(self, painter: QPainter) -> None:
        """A band over each fault, with a bar at its top that colour-blind people see as well."""
        band = QColor(self._colours.warning)
        for one in self._checked.findings:
            left, width = self._place(one.start), max(4.0, self._place(one.end - one.start))
            for alpha, height in ((50, self.height()), (255, 3)):
                band.setAlpha(alpha)
                painter.fillRect(QRectF(left, 0, width, height), band)

    def _place(self, seconds: float) -> float:
        return seconds / self.room * self.width()

    def _at(self, x: float) -> float:
        return max(0.0, min(x / max(1, self.width()) * self.room, self._now.seconds))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self._now.seconds:
            self._pressed = event.position().x()
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None or (abs(event.position().x() - self._pressed) < 4 and self._drawn is None):
            return
        start, end = sorted(map(self._at, (self._pressed, event.position().x())))
        self._drawn = start, end
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, drawn, self._pressed, self._drawn = self._pressed, self._drawn, None, None
        if pressed is not None:
            if drawn is None:
                self.sought.emit(self._at(event.position().x()))
            elif drawn[1] > drawn[0]:
                self.region_drawn.emit(*drawn)
            self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


_NOTHING = "Nothing to play yet"


class PlayerPanel(QWidget):
    """Shows the current sound and offers the actions; plays nothing itself."""

    screen_role = GROUP

    side_chosen = Signal(str)
    disabled = Signal()
    """The bar was disabled, as when the window closes: stop playback at once."""

    def __init__(self, colours: Colours, can: Mapping[str, Action]) -> None:
        super().__init__()
        self.can = can
        for action in (can["start"], can["play"], can["stop"], can["loop"]):
            action.explain(lambda: f"{_NOTHING}." if self._now.origin is Origin.NOTHING else "")
        can["play"].explain(lambda: self._problem.text())
        can["switch"].explain(lambda: "" if len(self._there) > 1 else "Make two takes to switch between.")
        can["reconnect"].explain(lambda: "Looking for an audio device…" if self._probing else "")
        self._colours = colours
        self._now = Heard()
        self._there: tuple[str, ...] = ()
        self._position = 0.0
        self._probing = False
        self.setAccessibleName("Player")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._start, self._play, self._stop, self._loop, self._switch = (
            ActionButton(one, "") for one in (can["start"], can["play"], can["stop"], can["loop"], can["switch"])
        )
        self.sides = SideButtons("take", verb="Hear", between=self._switch)
        self.sides.chosen.connect(self.side_chosen)
        own = self._start, self._play, self._stop, self._loop, self._switch
        for button in (*own, *self.sides.buttons.values()):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # A click leaves the focus where it is.
        self._title = build.label(name="What is heard", rich=True, yielding=True)
        self.strip = WaveStrip(colours)
        self._problem_icon = QLabel()
        self._problem = build.label(look="warning", name="Audio device", yielding=True)
        self._reconnect = ActionButton(can["reconnect"], look="link")
        self._time = build.label(name="Position")
        self._time.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        # Fixed, so that no text of many in a second lays the bar out anew.
        metrics = self.fontMetrics()
        self._time.setFixedSize(metrics.horizontalAdvance("000.00 / 000.00 s"), metrics.height())
        tip = "Equal loudness for A and B (ITU-R BS.1770), because louder always sounds better (M)"
        self.match = build.named(QCheckBox("Match loudness"), tip=tip)
        self.match.setChecked(True)
        self.match.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._gains = build.label(look="muted", name="Gains")
        self._lay_out()
        self.setFocusProxy(self._play)
        self._title.installEventFilter(self)
        recolour(self, colours)
        self.show_heard(self._now, ())

    def _lay_out(self) -> None:
        self._line = QStackedWidget()
        self._line.setFixedHeight(round(1.2 * self.fontMetrics().height()))
        for one in (self._title, build.row(self._problem_icon, (self._problem, 1), self._reconnect)):
            self._line.addWidget(one)
        controls = QWidget()
        row = HBoxLayout(controls)
        row.setContentsMargins(0, 0, 0, 0)
        for button in (self._start, self._play, self._stop, self._loop):
            row.addWidget(button)
        row.addSpacing(GAP)
        row.addWidget(self.sides)
        row.addSpacing(GAP)
        row.addWidget(build.column(build.row((self._line, 1), self._time), (self.strip, 1)), 1)
        row.addSpacing(GAP)
        row.addWidget(build.column(self.match, self._gains))
        self._pages = QStackedWidget()
        self._pages.addWidget(controls)
        self._pages.addWidget(build.label("A listening test is using the player.", "muted", name="Player"))
        build.fill(VBoxLayout(self), [self._pages], (GAP, NEAR, GAP, NEAR))
        self.setFixedHeight(round(4 * self.fontMetrics().height()))

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        buttons = self._start, self._stop, self._loop, self._switch
        for button, name in zip(buttons, ("start", "stop", "loop", "switch"), strict=True):
            button.setIcon(icon(name))
        size = round(0.9 * self.fontMetrics().height())
        self._problem_icon.setPixmap(pixmap("speaker-off", colours.warning, size, self.devicePixelRatioF()))
        self._show_play()
        self._show_title()

    def show_heard(self, now: Heard, there: Collection[str]) -> None:
        """Show the current sound and enable the sides in ``there``; show nothing of a listening test."""
        self._now, self._there = now, tuple(there)
        self._pages.setCurrentIndex(1 if now.origin is Origin.TEST else 0)
        self.strip.set_heard(now)
        if now.origin is Origin.TEST:
            self._title.clear()
            self._time.clear()
            return
        self.sides.show_side(now.letter, there)
        self.can["switch"].refresh()
        loop = now.loop
        self.can["loop"].setChecked(loop is not None)
        said = "Loop" if loop is None else f"Loop from {fixed(loop[0], 2)} to {fixed(loop[1], 2)} s"
        self.can["loop"].set_tip(f"{said} (L)")
        self._loop.setAccessibleDescription(said)
        self._show_play()
        self._show_title()
        self.show_position(self._position)

    def show_position(self, seconds: float) -> None:
        self._position = seconds
        if self._now.origin is not Origin.TEST:
            length = "" if self._now.origin is Origin.STREAM else f" / {fixed(self._now.own_seconds, 2)}"
            text = "" if self._now.origin is Origin.NOTHING else f"{fixed(seconds, 2)}{length} s"
            if self._time.text() != text:
                self._time.setText(text)
            self.strip.set_position(seconds)

    def reconnect(self) -> None:
        """Look for an audio device again, if there is none."""
        if self._problem.text():
            self.can["reconnect"].trigger()

    def show_gains(self, gains: Sequence[str], caution: str) -> None:
        """Show the gains of the first two lanes, all of them in the tooltip, and a ``caution`` about them."""
        self._gains.setText("   ".join(gains[: len(SIDES)]))
        self._gains.setToolTip("\n".join(filter(None, (caution, *gains[len(SIDES) :]))))
        set_look(self._gains, "warning" if caution else "muted")

    def show_problem(self, problem: str, shown: bool) -> None:
        """Set why nothing can be heard, or ``""``; ``shown``: display it in place of the title."""
        self._problem.setText(problem)
        self._problem.setToolTip(problem)
        self._line.setCurrentIndex(1 if problem and shown else 0)
        self._show_play()

    def show_probing(self, probing: bool) -> None:
        self._probing = probing
        self.can["reconnect"].refresh()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Elide the title anew when its width changes."""
        if watched is self._title and event.type() is QEvent.Type.Resize:
            self._show_title()
        return False

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.EnabledChange and not self.isEnabled():
            self.disabled.emit()
        super().changeEvent(event)

    def _show_play(self) -> None:
        can, title = self.can, "Pause" if self._now.sounding else "Play"
        self._play.setIcon(icon(title.lower()))
        can["play"].setText(title)
        can["play"].set_tip(f"{title} (Space)")
        for action in (can["start"], can["play"], can["stop"], can["loop"]):
            action.refresh()

    def _show_title(self) -> None:
        now = self._now
        if now.origin is Origin.TEST:
            return
        # Elide by hand: Qt cuts rich text off within a letter.
        bold, plain = QFontMetrics(bold_font(self._title.font())), self._title.fontMetrics()
        right = Qt.TextElideMode.ElideRight
        head = bold.elidedText(now.title or _NOTHING, right, self._title.width())
        room = self._title.width() - bold.horizontalAdvance(f"{head}    ")
        tail = plain.elidedText(now.detail, right, room) if room > 0 else ""
        title, detail = html.escape(head), html.escape(tail)
        muted = f'<span style="color:{self._colours.muted}">'
        text = f"<b>{title}</b> &nbsp; {muted}{detail}</span>" if now.title else f"{muted}{title}</span>"
        if text != self._title.text():
            self._title.setText(text)
        whole = "\n".join(filter(None, (now.title, now.detail)))
        self._title.setToolTip(whole)
        self._title.setAccessibleDescription(whole)
