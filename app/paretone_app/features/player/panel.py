"""The player: what is heard and where it comes from, its waveform, and the controls, in one bar.

The bar knows neither the player nor the application's state: methods in, signals out.
"""

from __future__ import annotations

import html
from collections.abc import Collection

from PySide6.QtCore import QEvent, QObject, Qt, Signal, SignalInstance
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QCheckBox,
    QLabel,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QWidget,
)

from paretone_app.features.player.strip import WaveStrip
from paretone_app.numbers import fixed
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR, bold_font, icon, pixmap, set_look
from paretone_app.state.playing import Heard, Origin
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.screen_readers import GROUP
from paretone_app.widgets.side_panel import SIDES, SideButtons

_NOTHING = "Nothing to play yet"
_TEST = "A listening test is using the player."


class PlayerPanel(QWidget):
    """Shows its state and emits what is wanted; it plays nothing."""

    screen_role = GROUP

    start_wanted = Signal()
    play_wanted = Signal()
    """Play or pause."""
    stop_wanted = Signal()
    loop_wanted = Signal()
    """Repeat, or stop repeating."""
    side_wanted = Signal(str)
    """``"A"`` or ``"B"`` is to be heard."""
    switch_wanted = Signal()
    """The other side is to be heard."""
    matching_changed = Signal(bool)
    """Whether both sides are to be equally loud."""
    silence_wanted = Signal()
    """The window closes: fall silent at once."""
    retry_wanted = Signal()
    """An audio device is to be looked for again."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._now = Heard()
        self._position = 0.0
        self._cannot = True
        """Whether nothing can be heard."""
        self.setAccessibleName("Player")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._start = self._button("Go to the start", "Home", self.start_wanted)
        self._play = self._button("Play", "Space", self.play_wanted)
        self._stop = self._button("Stop", "S", self.stop_wanted)
        self._loop = self._button("Loop", "L", self.loop_wanted, checkable=True)
        self._switch = self._button("Switch between A and B", "X", self.switch_wanted)
        self._sides = SideButtons("take", verb="Hear", between=self._switch)
        self._sides.chosen.connect(self.side_wanted)
        for button in self._sides.buttons.values():
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._title = build.label(name="What is heard", rich=True, yielding=True)
        self.strip = WaveStrip(colours)
        """The waveform."""
        self._problem_icon = QLabel()
        self._problem = build.label(look="warning", name="Audio device", yielding=True)
        self._retry = build.named(QToolButton(), "Reconnect", "Look for an audio device again (N)")
        self._retry.setText("Reconnect")
        self._retry.setProperty("look", "quiet")
        self._retry.clicked.connect(self.retry_wanted)
        self._time = build.label(name="Position")
        self._time.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._time.setMinimumWidth(self.fontMetrics().horizontalAdvance("000.00 / 000.00 s"))
        self._match = QCheckBox("Match loudness")
        self._match.setChecked(True)
        self._match.setToolTip("Equal loudness for A and B (ITU-R BS.1770), because louder always sounds better (M)")
        self._match.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._match.toggled.connect(self.matching_changed)
        self._gains = build.label(name="Gains")
        set_look(self._gains, "muted")
        self._lay_out()
        self.setFocusProxy(self._play)
        self._title.installEventFilter(self)
        self.set_colours(colours)
        self.show_heard(self._now, ())

    def _lay_out(self) -> None:
        self._line = QStackedWidget()
        self._line.setFixedHeight(round(1.2 * self.fontMetrics().height()))
        for one in (self._title, build.row(self._problem_icon, (self._problem, 1), self._retry)):
            self._line.addWidget(one)
        controls = QWidget()
        row = HBoxLayout(controls)
        row.setContentsMargins(0, 0, 0, 0)
        for button in (self._start, self._play, self._stop, self._loop):
            row.addWidget(button)
        row.addSpacing(GAP)
        row.addWidget(self._sides)
        row.addSpacing(GAP)
        row.addWidget(build.column(self._line, (self.strip, 1)), 1)
        row.addSpacing(GAP)
        row.addWidget(self._time)
        row.addWidget(build.column(self._match, self._gains))
        self._pages = QStackedWidget()
        self._pages.addWidget(controls)
        self._pages.addWidget(build.label(_TEST, "muted", name="Player"))
        layout = VBoxLayout(self)
        layout.setContentsMargins(GAP, NEAR, GAP, NEAR)
        layout.addWidget(self._pages)
        self.setFixedHeight(round(4 * self.fontMetrics().height()))

    @staticmethod
    def _button(name: str, key: str, wanted: SignalInstance, checkable: bool = False) -> QPushButton:
        button = build.button("", tip=f"{name} ({key})", name=name)
        button.setCheckable(checkable)
        # A click leaves the focus where it is.
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(lambda _=False: wanted.emit())
        return button

    # --- Methods in --------------------------------------------------------------------------------------------------
    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        for button, name in (
            (self._start, "start"),
            (self._stop, "stop"),
            (self._loop, "loop"),
            (self._switch, "switch"),
        ):
            button.setIcon(icon(name))
        self._sides.set_colours(colours)
        size = round(0.9 * self.fontMetrics().height())
        self._problem_icon.setPixmap(pixmap("speaker-off", colours.warning, size, self.devicePixelRatioF()))
        self.strip.set_colours(colours)
        self._show_play()
        self._show_title()

    def show_heard(self, now: Heard, there: Collection[str]) -> None:
        """Show what is in the player, and offer the sides that are ``there``. Of a listening test nothing is shown."""
        self._now = now
        self._pages.setCurrentIndex(1 if now.origin is Origin.TEST else 0)
        self.strip.set_heard(now)
        if now.origin is Origin.TEST:
            self._title.clear()
            self._time.clear()
            return
        self._sides.show_side(now.letter, there)
        self._switch.setEnabled(all(side in there for side in SIDES))
        loop = now.loop
        self._loop.setChecked(loop is not None)
        said = "Loop" if loop is None else f"Loop from {fixed(loop[0], 2)} to {fixed(loop[1], 2)} s"
        self._loop.setToolTip(f"{said} (L)")
        self._loop.setAccessibleDescription(said)
        self._show_play()
        self._show_title()
        self.show_position(self._position)

    def show_position(self, seconds: float) -> None:
        """Show the position. Called 30 times a second."""
        self._position = seconds
        if self._now.origin is Origin.TEST:
            return
        length = "" if self._now.origin is Origin.STREAM else f" / {fixed(self._now.own_seconds, 2)}"
        text = "" if self._now.origin is Origin.NOTHING else f"{fixed(seconds, 2)}{length} s"
        if self._time.text() != text:
            self._time.setText(text)
        self.strip.set_position(seconds)

    def toggle_matching(self) -> None:
        """Make both sides equally loud, or no longer."""
        self._match.toggle()

    def reconnect(self) -> None:
        """Look for an audio device again, if that can be done now."""
        if self._cannot and self._retry.isEnabled():
            self.retry_wanted.emit()

    def show_name(self, side: str, name: str | None) -> None:
        """Show what is on ``side``; ``None`` for nothing."""
        self._sides.buttons[side].setToolTip(f"No take {side} yet" if name is None else f"{name} ({side})")

    def show_gains(self, text: str, caution: str) -> None:
        """Show how loud the sides are made, and what is to be known about it."""
        self._gains.setText(text)
        self._gains.setToolTip(caution)
        set_look(self._gains, "warning" if caution else "muted")

    def show_problem(self, problem: str, shown: bool) -> None:
        """Why nothing can be heard, or ``""``; ``shown`` in place of the title or not."""
        self._cannot = bool(problem)
        self._problem.setText(problem)
        self._problem.setToolTip(problem)
        self._line.setCurrentIndex(1 if problem and shown else 0)
        self._show_play()

    def show_probing(self, probing: bool) -> None:
        """Whether a device is being looked for."""
        self._retry.setEnabled(not probing)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The title is shown as far as there is room."""
        if watched is self._title and event.type() is QEvent.Type.Resize:
            self._show_title()
        return False

    @property
    def _title_metrics(self) -> QFontMetrics:
        """Those of the bold part of the title."""
        return QFontMetrics(bold_font(self._title.font()))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.EnabledChange and not self.isEnabled():
            self.silence_wanted.emit()
        super().changeEvent(event)

    # --- Showing -----------------------------------------------------------------------------------------------------
    def _show_play(self) -> None:
        """Show what the buttons would do."""
        sounding, there = self._now.sounding, self._now.origin is not Origin.NOTHING
        for button in (self._start, self._stop, self._loop):
            button.setEnabled(there)
        self._play.setEnabled(there and not self._cannot)
        self._play.setIcon(icon("pause" if sounding else "play"))
        self._play.setAccessibleName("Pause" if sounding else "Play")
        self._play.setToolTip(f"{self._play.accessibleName()} (Space)")

    def _show_title(self) -> None:
        now = self._now
        if now.origin is Origin.TEST:
            return
        # Qt cuts rich text off within a letter.
        bold, plain, right = self._title_metrics, self._title.fontMetrics(), Qt.TextElideMode.ElideRight
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
