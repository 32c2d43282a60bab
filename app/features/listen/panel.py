"""Listen: can I hear the difference? A and B switched in the middle of a word, seen side by side, equally loud."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from app.audio.analysis import Analyser, Analysis
from app.audio.device import Sound, probe
from app.audio.player import Player
from app.audio.switching import Comparison, Mode, comparison
from app.features.listen.plots import ComparisonPlots, Picture
from app.features.listen.transport import SIDES, TransportBar
from app.listening.wording import signed
from app.shell.theme import Colours, set_look
from app.widgets.remarks import Caution, DeviceProblem, Facts
from engine.errors import DeviceError
from engine.setting.take import Take

STEP_SECONDS = 0.25
SMALL_STEP_SECONDS = 0.02
_POLL_MILLISECONDS = 33
_ZOOM = 1.5


class ListenPanel(QWidget):
    """Player and plots for two takes. Takes come in by :meth:`set_take`, streams by :meth:`begin_stream`.

    Keys: A and B choose, X switches, Space plays and pauses, L loops, ``[`` and ``]`` set the loop's ends at the
    playhead, the arrow keys seek (Shift: finely), Home goes to the start, + and - zoom, 0 shows all.
    """

    switched = Signal(str)
    """The take that is heard from now on: ``"A"`` or ``"B"``."""
    position_changed = Signal(float)
    """Seconds into the take."""
    playing_changed = Signal(bool)
    problem_changed = Signal(str)
    """Why nothing can be heard, or ``""``."""
    underruns_changed = Signal(int)
    analysed = Signal()
    """Takes that were set are drawn and can be played."""

    def __init__(self, player: Player, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.player = player
        self._colours = colours
        self._takes: dict[str, Take | None] = dict.fromkeys(SIDES)
        self._analysis = Analysis()
        self._aligned = True
        self._heard = "A"
        self._loaded: tuple[tuple[str, Take], ...] = ()
        self._load_pending = False
        self._loop: tuple[float, float] | None = None
        self._region: tuple[float, float] | None = None
        self._play_wanted = False
        self._shown: tuple[bool, float] = (False, 0.0)
        self._problem: str | None = None
        self._probing = False
        self._looked = False
        self._lent = False
        self._late: Analysis | None = None
        self._analyser = Analyser(player.prepare, self)
        self._analyser.done.connect(self._take_over)
        self._analyser.failed.connect(self._give_up)
        self.setAccessibleName("Listen")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._make_widgets()
        self._lay_out()
        self._make_shortcuts()
        self._poll = QTimer(self, interval=_POLL_MILLISECONDS)
        self._poll.timeout.connect(self._refresh)
        self._poll.start()
        self.set_colours(colours)
        self._show_gains()
        self._show_choice()
        self._refresh()

    # --- What comes in ----------------------------------------------------------------------------------------------
    def set_take(self, side: str, take: Take | None) -> None:
        """Put ``take`` on side ``"A"`` or ``"B"``. It is analysed in a worker thread; ``analysed`` tells when."""
        if side not in SIDES:
            raise ValueError(f"a side is A or B, not {side!r}")
        self._takes[side] = take
        self._analyse()

    def set_aligned(self, aligned: bool) -> None:
        """Whether the models of A and B keep the timing from take to take (autoregressive ones do not)."""
        if aligned != self._aligned:
            self._aligned = aligned
            self._analyse()

    def set_warning(self, text: str) -> None:
        """A sentence of caution about the comparison, or ``""``."""
        self._caution.say(text)

    def set_difference(self, text: str) -> None:
        """What differs between A and B, or ``""``."""
        self._difference.setText(text)
        self._difference.setVisible(bool(text))

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.plots.set_colours(colours)
        self._caution.set_colours(colours)
        self._device_problem.set_colours(colours)
        self._transport.set_colours(colours, self._shown[0])
        self._show_choice()

    def connect_device(self) -> None:
        """Look for the audio device in the background and open it; again after it was lost."""
        if not self._probing:
            self._probing = self._looked = True
            self._device_problem.allow_retry(False)
            self._analyser.run(probe, self._open_device)

    def lend(self) -> Player:
        """Hand the player to a listening test until :meth:`take_back`; this panel leaves it alone meanwhile."""
        self._lent = True
        self._play_wanted = False
        self.player.pause()
        self.setEnabled(False)
        return self.player

    def take_back(self) -> None:
        """The listening test is over: A and B come back."""
        self._lent = False
        self.player.clear_loop()
        self.player.fade_out_and_in(False)
        self.setEnabled(True)
        # What was loaded is another's; by the next look at the player it will have fallen silent.
        self._loaded, self._load_pending = (), True
        late, self._late = self._late, None
        if late is not None:
            self._take_over(late)

    @property
    def lent(self) -> bool:
        """Whether a listening test has the player."""
        return self._lent

    # --- Streams ----------------------------------------------------------------------------------------------------
    def begin_stream(self, rate: int, alone: bool = False) -> None:
        """Play a take while it is being made, or a sound ``alone`` that is there already; A and B come back when it has
        been heard, or on the next key."""
        self._set_loop(None)
        self.player.begin_stream(rate, alone)
        self._loaded, self._load_pending = (), True
        self._show_mode()

    def append(self, samples: np.ndarray) -> None:
        """More of the stream."""
        self.player.append(samples)

    def end_stream(self) -> None:
        """The stream is complete."""
        self.player.end_stream()

    # --- Transport --------------------------------------------------------------------------------------------------
    @property
    def heard(self) -> str:
        """The chosen side."""
        return self._heard

    @Slot(str)
    def choose(self, side: str) -> None:
        """Hear side ``"A"`` or ``"B"``; nothing happens when it is empty."""
        if self._takes[side] is not None and side != self._heard and not self._lent:
            self._load_if_pending()
            self._heard = side
            index = self._index(side)
            if index is not None:
                self.player.choose(index)
            self.switched.emit(side)
        self._show_choice()

    @Slot()
    def switch(self) -> None:
        """Hear the other one."""
        self.choose("B" if self._heard == "A" else "A")

    @Slot()
    def toggle_play(self) -> None:
        """Play or pause."""
        if self._lent:
            return
        if self.player.playing or self._play_wanted:
            self._play_wanted = False
            self.player.pause()
        elif self._analyser.busy:
            self._play_wanted = True
        else:
            self._load_if_pending()
            self.player.play()
        self._refresh()

    @Slot()
    def go_to_start(self) -> None:
        """Go to the start, or to the loop's; continues playing."""
        self.seek(self._loop[0] if self._loop else 0.0)

    def seek(self, seconds: float) -> None:
        """Go to a time."""
        if self._lent:
            return
        if not self.player.streaming:
            self._load_if_pending()
        self.player.seek(max(0.0, min(seconds, self._duration)))
        self._refresh()

    def hear_from(self, side: str, seconds: float) -> None:
        """Play side ``"A"`` or ``"B"`` from a time on."""
        if self._lent:
            return
        self.choose(side)
        self.seek(seconds)
        if not self.player.playing:
            self.toggle_play()

    @Slot()
    def toggle_loop(self) -> None:
        """Repeat the region drawn last, or what is in view; or stop repeating."""
        if self._loop is not None:
            self._set_loop(None)
        else:
            start, end = self._region or self.plots.seen
            self._set_loop((max(0.0, start), min(end, self._duration)))

    def set_loop(self, start: float, end: float) -> None:
        """Repeat from ``start`` to ``end`` seconds."""
        self._set_loop((start, end))

    # --- Building ---------------------------------------------------------------------------------------------------
    def _make_widgets(self) -> None:
        self._transport = TransportBar()
        self._transport.start_wanted.connect(self.go_to_start)
        self._transport.play_wanted.connect(self.toggle_play)
        self._transport.loop_wanted.connect(self.toggle_loop)
        self._transport.side_wanted.connect(self.choose)
        self._transport.switch_wanted.connect(self.switch)
        self._transport.matching_changed.connect(self._apply_gains)
        self._difference = QLabel(wordWrap=True)
        self._difference.hide()
        self._difference.setAccessibleName("What differs")
        set_look(self._difference, "muted")
        self._caution, self._facts = Caution(), Facts()
        self._device_problem = DeviceProblem()
        self._device_problem.retry_wanted.connect(self.connect_device)
        self.plots = ComparisonPlots(self._colours)
        self.plots.sought.connect(self.seek)
        self.plots.region_drawn.connect(self.set_loop)
        self.plots.read_out.connect(self._facts.show_read_out)

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 6)
        layout.setSpacing(5)
        layout.addWidget(self._device_problem)
        layout.addWidget(self._transport)
        layout.addWidget(self._difference)
        layout.addWidget(self._caution)
        layout.addWidget(self.plots, 1)
        layout.addWidget(self._facts)

    def _make_shortcuts(self) -> None:
        for key, slot in (
            ("A", lambda: self.choose("A")),
            ("B", lambda: self.choose("B")),
            ("X", self.switch),
            ("Space", self._press_space),
            ("L", self.toggle_loop),
            ("[", lambda: self._set_loop_end(0)),
            ("]", lambda: self._set_loop_end(1)),
            ("Left", lambda: self._step(-STEP_SECONDS)),
            ("Right", lambda: self._step(STEP_SECONDS)),
            ("Shift+Left", lambda: self._step(-SMALL_STEP_SECONDS)),
            ("Shift+Right", lambda: self._step(SMALL_STEP_SECONDS)),
            ("Home", self.go_to_start),
            ("+", lambda: self.plots.zoom(1 / _ZOOM, self.player.position)),
            ("-", lambda: self.plots.zoom(_ZOOM, self.player.position)),
            ("0", self.plots.show_all),
        ):
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)

    def _press_space(self) -> None:
        # Users who tab to a button expect Space to press that button.
        focus = QApplication.focusWidget()
        if isinstance(focus, QAbstractButton) and self.isAncestorOf(focus):
            focus.click()
        else:
            self.toggle_play()

    # --- Takes ------------------------------------------------------------------------------------------------------
    @property
    def _duration(self) -> float:
        return max((take.seconds for take in self._takes.values() if take is not None), default=0.0)

    def _index(self, side: str) -> int | None:
        return next((index for index, (name, _) in enumerate(self._loaded) if name == side), None)

    def _analyse(self) -> None:
        self._analyser.analyse((self._takes["A"], self._takes["B"]))

    @Slot()
    def _give_up(self) -> None:
        self._play_wanted = False

    @Slot(object)
    def _take_over(self, analysis: Analysis) -> None:
        if self._lent:
            self._late = analysis
            return
        self._analysis = analysis
        self.plots.set_names(*(_name(take) for take in analysis.takes))
        for side, take in zip(SIDES, analysis.takes, strict=True):
            self._transport.show_name(side, None if take is None else _name(take))
        if self._loop is not None and self._loop[1] > self._duration:
            self._set_loop(None)
        self._region = None if self._loop is None else self._region
        if self.player.streaming:
            self._load_pending = True
        else:
            self._load()
        self._draw()
        if self._play_wanted:
            self._play_wanted = False
            self.player.play()
        self.analysed.emit()

    def _load(self) -> None:
        self._load_pending = False
        before = dict(self._loaded).get(self._heard)
        loaded = tuple((side, take) for side, take in zip(SIDES, self._analysis.takes, strict=True) if take is not None)
        sides = [side for side, _ in loaded]
        if self._heard not in sides and sides:
            self._heard = sides[0]
            self.switched.emit(self._heard)
        self._loaded = loaded
        # A take keeps playing when the other one changes; so does the stream when the finished take replaces it.
        kept = self.player.streaming or (before is not None and dict(loaded).get(self._heard) is before)
        self.player.load(
            [(take.samples, take.sample_rate) for _, take in loaded],
            self._player_gains(),
            aligned=self._aligned,
            choice=self._index(self._heard) or 0,
            keep_place=kept,
        )
        if self._loop is not None:
            self.player.set_loop(*self._loop)
        self._show_gains()
        self._show_mode()
        self._show_choice()
        self._refresh()

    def _load_if_pending(self) -> None:
        if self._load_pending:
            self._load()

    def _matched_gains(self) -> tuple[float, float]:
        return self._analysis.gains if self._transport.matches else (1.0, 1.0)

    def _player_gains(self) -> list[float]:
        gains = dict(zip(SIDES, self._matched_gains(), strict=True))
        return [gains[side] for side, _ in self._loaded]

    @Slot()
    def _apply_gains(self) -> None:
        if not self._load_pending and not self._lent:
            self.player.set_gains(self._player_gains())
        self._show_gains()
        self._draw()

    def _draw(self) -> None:
        """Draw the takes as loud as they are heard."""
        picture_a, picture_b = (
            None if take is None else Picture(take.samples * np.float32(gain), take.sample_rate, mel + np.log(gain))
            for take, mel, gain in zip(self._analysis.takes, self._analysis.mels, self._matched_gains(), strict=True)
        )
        take_a, take_b = self._analysis.takes
        reason = ""
        if take_a is not None and take_b is not None:
            if self._comparison().mode is Mode.RESTART:
                reason = "The takes have different timing: a difference would mean nothing."
            elif take_a.sample_rate != take_b.sample_rate:
                reason = "The takes have different sample rates: no difference to show."
        self.plots.set_pictures(picture_a, picture_b, reason)
        self.plots.set_loop(self._loop)

    def _comparison(self) -> Comparison:
        return comparison([take.seconds for take in self._analysis.takes if take is not None], self._aligned)

    # --- Loop and position ------------------------------------------------------------------------------------------
    def _set_loop(self, loop: tuple[float, float] | None) -> None:
        if loop is not None and loop[1] <= loop[0]:
            loop = None
        self._loop = loop
        self._region = loop or self._region
        if loop is None:
            self.player.clear_loop()
        else:
            self.player.set_loop(*loop)
        self.plots.set_loop(loop)
        self._transport.show_loop(loop)

    def _set_loop_end(self, which: int) -> None:
        ends = list(self._loop or (0.0, self._duration))
        ends[which] = self.player.position
        if ends[0] < ends[1]:
            self._set_loop((ends[0], ends[1]))

    def _step(self, seconds: float) -> None:
        self.seek(self.player.position + seconds)

    # --- Showing ----------------------------------------------------------------------------------------------------
    @Slot()
    def _refresh(self) -> None:
        """Follow the player. Called 30 times a second."""
        if self._lent:
            return
        problem = self.player.problem
        if problem != self._problem and not self._probing:
            self._show_problem(problem)
        if self._load_pending and not self.player.streaming:
            self._load()
        playing, position, underruns = self.player.playing, self.player.position, self.player.underruns
        was_playing, was_at = self._shown
        self._shown = playing, position
        if playing != was_playing:
            self._transport.show_playing(playing)
            self.playing_changed.emit(playing)
        if position != was_at:
            self.position_changed.emit(position)
        streaming = self.player.streaming
        if self.isVisible() and position != was_at and not streaming:
            self.plots.set_position(position)
        self._facts.show_underruns(underruns, self.player.starvations)
        self._transport.show_time(f"{position:.2f} s" if streaming else f"{position:.2f} / {self._duration:.2f} s")

    def _show_problem(self, problem: str) -> None:
        if problem and self.player.mixer.state.playing:
            self.player.pause()
        self._problem = problem
        # Before anyone looked for a device there is nothing to complain about.
        self._device_problem.say(problem, bool(problem) and self._looked)
        self._transport.allow_playing(not problem)
        self.problem_changed.emit(problem)

    def _show_choice(self) -> None:
        self._transport.show_sides(self._heard, [side for side, take in self._takes.items() if take is not None])
        self.plots.set_heard(SIDES.index(self._heard) if self._takes[self._heard] is not None else None)

    def _show_gains(self) -> None:
        parts = [
            f"{side} {_decibels(gain)}"
            for side, take, gain in zip(SIDES, self._analysis.takes, self._matched_gains(), strict=True)
            if take is not None
        ]
        short = "" if self._analysis.exact else "Measured without gating: a take is shorter than 0.4 s."
        self._transport.show_gains("   ".join(parts), short)

    def _show_mode(self) -> None:
        active = self.player.comparison
        titles = {Mode.SYNC: "In sync", Mode.RESTART: "Restart", Mode.STREAM: "Streaming", Mode.ALONE: "Single"}
        both = len(self._loaded) == len(SIDES) or active.mode in (Mode.STREAM, Mode.ALONE)
        self._facts.show_mode(titles[active.mode], active.reason if both else "")

    # --- The device -------------------------------------------------------------------------------------------------
    def _open_device(self, sound: Sound | BaseException) -> None:
        self._probing = False
        self._device_problem.allow_retry(True)
        if isinstance(sound, BaseException):
            raise sound
        try:
            self.player.open(sound)
        except DeviceError as error:
            self._show_problem(str(error))
        self._refresh()

    def shut_down(self) -> None:
        """Close the device and end the worker thread."""
        self._poll.stop()
        self.player.close()
        self._analyser.shut_down(wait=not self._probing)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.shut_down()
        super().closeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.EnabledChange and not self.isEnabled() and not self._lent:
            self.player.pause()
        super().changeEvent(event)


def _name(take: Take | None) -> str:
    return "" if take is None else take.label or take.text


def _decibels(gain: float) -> str:
    return f"{signed(20 * np.log10(gain), '+')} dB"
