"""Base of the pages of listening tests, which show nothing that identifies sounds: no waveform, gain or score."""

import time
from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeySequence, QMouseEvent, QPainter, QPaintEvent, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QPushButton, QWidget

from paretone.listening.trials import TrialConditions, TrialRecord
from paretone_app.audio.player import Mode, Player
from paretone_app.listening.mushra import SHORTEST_LOOP_SECONDS
from paretone_app.listening.session import ListeningSession
from paretone_app.listening.stimuli import TOLERANCE_DECIBELS
from paretone_app.numbers import with_sign
from paretone_app.plotting.cursor_canvas import Painted
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, HEADING, text_font
from paretone_app.widgets import build
from paretone_app.widgets.action import Action
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.screen_readers import CHART, GROUP, announce


class TimeLine(Painted):
    """Click to seek, drag to select a loop."""

    screen_role = CHART

    sought = Signal(float)
    """In seconds."""
    region_drawn = Signal(float, float)
    """From and to, in seconds."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._seconds = self._position = 0.0
        self._loop: tuple[float, float] | None = None
        self._pressed: float | None = None
        self._dragged: float | None = None  # Where the mouse was pressed, and dragged to, in pixels.
        self.setAccessibleName("Position and loop")
        self.setToolTip("Click to seek; drag to loop a section")

    def show_sound(self, seconds: float) -> None:
        """Show a sound of this length, from its beginning."""
        self._seconds, self._position, self._loop = seconds, 0.0, None
        self.update()

    def show_position(self, seconds: float) -> None:
        """Show the position. Called 30 times a second."""
        if seconds != self._position:
            self._position = seconds
            self.update()

    def show_loop(self, loop: tuple[float, float] | None) -> None:
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
            painter.setBrush(QColor(self.colours.raised))
            painter.drawRoundedRect(whole, 4, 4)
            if self._seconds <= 0:
                return
            loop = self._loop if self._drawn is None else self._drawn
            if loop is not None:
                shade = QColor(self.colours.accent)
                shade.setAlphaF(0.35)
                painter.setBrush(shade)
                left, right = self._x(loop[0]), self._x(loop[1])
                painter.drawRect(QRectF(left, whole.top(), max(1.0, right - left), whole.height()))
            painter.setBrush(QColor(self.colours.text))
            painter.drawRect(QRectF(self._x(self._position) - 1, whole.top() - 2, 2, whole.height() + 4))

    @property
    def _drawn(self) -> tuple[float, float] | None:
        """The region being drawn, in seconds."""
        if self._pressed is None or self._dragged is None:
            return None
        first, last = sorted((self._at(self._pressed), self._at(self._dragged)))
        return first, last

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._pressed, self._dragged = event.position().x(), None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is not None and abs(event.position().x() - self._pressed) >= 4:
            self._dragged = event.position().x()
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, drawn = self._pressed, self._drawn
        self._pressed = self._dragged = None
        if pressed is not None and self._seconds > 0:
            if drawn is None:
                self.sought.emit(self._at(pressed))
            else:
                self.region_drawn.emit(*drawn)
            self.update()

    def _x(self, seconds: float) -> float:
        return 1 + (self.width() - 2) * min(1.0, seconds / self._seconds)

    def _at(self, x: float) -> float:
        return self._seconds * min(1.0, max(0.0, (x - 1) / max(1, self.width() - 2)))


Keys = tuple[tuple[str, Callable[[], object]], ...]
"""Each with what it does."""
_MODES = {Mode.SYNC: "In sync", Mode.RESTART: "Restart"}


class SoundPage(QWidget):
    """Sounds heard by buttons and keys."""

    problem_changed = Signal(str)
    """Why nothing can be heard, as a sentence, or ``""``."""

    name: str
    screen_role = GROUP

    def __init__(self, player: Player, parent: QWidget) -> None:
        super().__init__(parent)
        self.player, self._problem = player, ""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.name)
        self._poll = QTimer(self, interval=33)
        self._poll.timeout.connect(self.follow)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep everything in one centred column."""
        # As wide as setup and results together.
        aside = max(GAP, (self.width() - 68 * self.fontMetrics().height()) // 2)
        if (layout := self.layout()) is not None:
            layout.setContentsMargins(aside, GAP, aside, GAP)
        super().resizeEvent(event)

    def _bind(self, keys: Keys) -> None:
        for key, slot in (("Space", self._press_space), *keys):
            QShortcut(QKeySequence(key), self, slot, Qt.ShortcutContext.WidgetWithChildrenShortcut)

    def hear(self, button: int) -> None:
        """Play the sound of ``button``, counted from 0."""
        raise NotImplementedError

    def _press_space(self) -> None:
        # Space presses a focused button, as expected.
        focus = QApplication.focusWidget()
        if isinstance(focus, QAbstractButton) and self.isAncestorOf(focus):
            focus.click()
        elif self.player.playing:
            self._pause()
        else:
            self.hear(self._to_hear())

    def _pause(self) -> None:
        self.player.pause()

    def _to_hear(self) -> int:
        """The sound that Space plays."""
        raise NotImplementedError

    def follow(self) -> None:
        if self.player.problem != self._problem:
            self._problem = self.player.problem
            self.problem_changed.emit(self._problem)

    def shut_down(self) -> None:
        """Stop playing; the page is no longer used."""
        self._poll.stop()
        self.player.pause()


class TrialPage(SoundPage):
    """One page for all trials of a session."""

    answered = Signal(object)
    """A :class:`TrialRecord` just given."""

    grows = False
    """Whether the sounds take all available height."""
    loops = True
    """Whether looping and seeking are possible."""
    restarts = False
    """Whether every sound restarts when chosen, aligned or not."""
    fades_out_and_in = False
    """Whether a switch fades out before it fades in."""
    mode_reason = ""
    """Why sounds restart or go on, if not the player's reason."""

    def __init__(
        self, session: ListeningSession, player: Player, colours: Colours, abandon: Action, parent: QWidget
    ) -> None:
        super().__init__(player, parent)
        self._abandon, self.session = abandon, session
        self._began = 0.0
        self._underruns = 0
        self._loop: tuple[float, float] | None = None
        self._was_playing = False
        self._sure_to_leave = False
        self.title, self.question = build.label(look="title"), build.words()
        self.taught = build.words("warning", name="Practice result")
        self.time_line = TimeLine(colours, self)
        self.time_line.setVisible(self.loops)
        self.time_line.sought.connect(self.player.seek)
        self.time_line.region_drawn.connect(self._set_loop)
        self.hint, self.facts = build.words("muted", name="What to do"), build.words("muted", name="Playback")
        self.leave_button = build.button("A&bandon…", self._leave, name="Abandon the test")
        self.leave_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        above, high, below = (0, 1, 0) if self.grows else (1, 0, 2)
        top = build.row(self.title, 1, self.leave_button), above, self.taught, self.question
        middle = (self._sounds(), high), self.time_line, self._answers()
        build.fill(VBoxLayout(self), (*top, *middle, below, self.hint, self.facts), (GAP,) * 4)
        looping: Keys = (
            ("L", lambda: self._set_loop(0.0, self._seconds) if self._loop is None else self._put_loop(None)),
            ("[", lambda: self._set_loop_end(0)),
            ("]", lambda: self._set_loop_end(1)),
            ("Backspace", lambda: self.player.seek(self._loop[0] if self._loop else 0.0)),
        )
        self._bind((*(looping if self.loops else ()), *self._keys()))
        self.player.set_loop(None)
        self.player.fade_out_and_in(self.fades_out_and_in)
        self._next_trial()
        self._poll.start()

    # --- For subclasses -----------------------------------------------------------------------------------------------
    def _sounds(self) -> QWidget:
        raise NotImplementedError

    def _answers(self) -> QWidget:
        raise NotImplementedError

    def _keys(self) -> Keys:
        raise NotImplementedError

    def _show(self) -> None:
        """Show which sound is heard, which answers are possible, and what to do."""
        todo = self.session.why_not_answer()
        self.hint.setText(f"{todo} {self._keys_hint()}" if todo else self._keys_hint())
        self.setAccessibleDescription(f"{self.question.text()} {self._keys_hint()}")

    def _keys_hint(self) -> str:
        raise NotImplementedError

    def _allow(self, *buttons: QPushButton) -> None:
        """Enable ``buttons`` if the trial can be answered now; otherwise their tooltips give the reason."""
        for button in buttons:
            button.setEnabled(not self.session.why_not_answer())
            button.setToolTip(self.session.why_not_answer())

    # --- Hearing -----------------------------------------------------------------------------------------------------
    def hear(self, button: int) -> None:
        if button >= len(self.session.trial.order):
            return
        self._note_end()
        self.session.hear(button)
        self.player.choose(button)
        if self.restarts:
            self.player.seek(0.0)
        # Always: a sound paused in the last trial may seem to play for another block. Playback continues.
        self.player.play()
        self._was_playing = True
        self._show()

    def _to_hear(self) -> int:
        return self.session.sounding or 0

    def _set_loop(self, start: float, end: float) -> None:
        end = min(max(end, start + SHORTEST_LOOP_SECONDS), self._seconds)
        start = max(0.0, min(start, end - SHORTEST_LOOP_SECONDS))
        self._put_loop((start, end))

    def _put_loop(self, loop: tuple[float, float] | None) -> None:
        self._loop = loop
        self.player.set_loop(loop)
        self.time_line.show_loop(loop)

    def _set_loop_end(self, which: int) -> None:
        ends = list(self._loop or (0.0, self._seconds))
        ends[which] = self.player.position
        if ends[0] < ends[1]:
            self._set_loop(*ends)

    @property
    def _seconds(self) -> float:
        return max(len(one.samples) for one in self.session.item.stimuli) / self.session.item.rate

    # --- Trials ------------------------------------------------------------------------------------------------------
    def _next_trial(self) -> None:
        session, item = self.session, self.session.item
        stimuli = [item.stimuli[place] for place in session.trial.order]
        sounds, gains = [(one.samples, item.rate) for one in stimuli], [10 ** (one.record.gain / 20) for one in stimuli]
        self._put_loop(None)
        self.player.load(sounds, gains, aligned=item.aligned and not self.restarts)
        self.time_line.show_sound(self._seconds)
        self._began = time.monotonic()
        self._underruns = self.player.underruns
        self._was_playing = False
        self._doubt()
        if self.isVisible():
            # Before a focused control is disabled, which would pass the focus to another panel.
            self.setFocus(Qt.FocusReason.OtherFocusReason)
        self._show()
        mode = self.player.comparison
        level = f"All sounds play at {with_sign(item.target)} LUFS (±{TOLERANCE_DECIBELS} dB, ITU-R BS.1770)"
        shown = f"{level}{self._known_gains()}. {_MODES.get(mode.mode, '')}: {self.mode_reason or mode.reason}"
        self.facts.setText(shown + ("" if item.exact else " Measured without gating: a sound is shorter than 0.4 s."))
        self.title.setText(self._progress())
        words = [session.taught] if session.taught else []
        if session.practising:
            words.append("This is practice; it is not recorded.")
        elif session.practice and not session.records:
            words.append("Practice is over: trials count from now on.")
        self.taught.setText(" ".join(words))
        self.taught.setVisible(bool(words))
        if self.isVisible():
            self._announce()

    def _progress(self) -> str:
        session = self.session
        if session.practising:
            return f"{self.name} · practice {session.practised + 1} of {len(session.practice)}"
        text = f"{self.name} · {session.valid + 1} of {session.planned}"
        return text + (f" · {session.void} void, repeated" if session.void else "")

    def _answer(self, give: Callable[[TrialConditions], TrialRecord | None]) -> None:
        """Give an answer if the trial can be answered; continue with the next trial."""
        self._note_end()
        if self.session.why_not_answer():
            self._show()
            return
        player, underruns = self.player, self.player.underruns - self._underruns
        if player.problem or underruns < 0:
            underruns = max(1, underruns)  # The device was lost, or came back with a new count.
        passed, mode = round(1000 * (time.monotonic() - self._began)), player.comparison.mode.value
        around = TrialConditions(passed, underruns, player.device_name, round(player.output_latency, 4), mode)
        player.pause()
        record = give(around)
        if not self.session.finished:
            self._next_trial()
        else:
            self._poll.stop()
        if record is not None:
            self.answered.emit(record)

    def follow(self) -> None:
        if self.player.comparison.mode is Mode.SYNC:
            # Positions would identify sounds of different lengths.
            self.time_line.show_position(self.player.position)
        self._note_end()
        super().follow()

    def _note_end(self) -> None:
        ended = self._was_playing and not self.player.playing and self.player.mixer.settled
        button, item = self.session.sounding, self.session.item
        if ended and button is not None:
            self._was_playing = False
            seconds = len(item.stimuli[self.session.trial.order[button]].samples) / item.rate
            # A sound that stops this near to its end was heard to the end.
            if self.player.mixer.state.position / self.player.rate >= seconds - 0.03:
                self.session.heard_whole.add(button)
            self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._announce()

    def _announce(self) -> None:
        """Announce practice feedback and the trial's number to screen readers, and nothing else."""
        announce(self, " ".join(filter(None, (self.taught.text(), self.title.text()))))

    def _known_gains(self) -> str:
        """Gains of sounds that are not hidden."""
        return ""

    # --- Leaving -----------------------------------------------------------------------------------------------------
    def _leave(self) -> None:
        if self._sure_to_leave:
            self._abandon.trigger()
            return
        self._sure_to_leave = True
        self.leave_button.setText("Really a&bandon (not scored)")
        QTimer.singleShot(4000, self, self._doubt)

    def _doubt(self) -> None:
        self._sure_to_leave = False
        self.leave_button.setText("A&bandon…")


def sound_button(text: str, name: str, tip: str, lines: float = 3) -> QPushButton:
    """A large button, ``lines`` high, pressed while its sound is heard."""
    button = build.button(text, tip=tip, name=name)
    button.setCheckable(True)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.setFont(text_font(button.font(), HEADING, strong=True))
    button.setMinimumHeight(round(lines * button.fontMetrics().height()))
    return button


def answer_button(text: str, name: str) -> QPushButton:
    button = build.button(text, name=name)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button


def row_of(*widgets: QWidget) -> QWidget:
    """``widgets`` side by side, equally wide."""
    return build.row(*((one, 1) for one in widgets))
