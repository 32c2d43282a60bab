"""Listen: can I hear the difference? A and B switched in the middle of a word, seen side by side, equally loud."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QVBoxLayout,
    QWidget,
)

from app.audio.device import Sound, probe
from app.audio.player import Player
from app.audio.switching import Mode
from app.features.listen.coming import ComingTake
from app.features.listen.deck import Deck
from app.features.listen.plots import ComparisonPlots, Picture
from app.features.listen.transport import TransportBar
from app.listening.wording import signed
from app.shell.theme import Colours, set_look
from app.widgets import build
from app.widgets.remarks import Caution, DeviceProblem, Facts
from app.widgets.side_buttons import SIDES
from engine.errors import DeviceError
from engine.setting.take import Take

STEP_SECONDS = 0.25
SMALL_STEP_SECONDS = 0.02
_POLL_MILLISECONDS = 33
_ZOOM = 1.5


class ListenPanel(QWidget):
    """Player and plots for the two takes of its :attr:`deck`.

    Keys: A and B choose, X switches, Space plays and pauses, L loops, ``[`` and ``]`` set the loop's ends at the
    playhead, the arrow keys seek (Shift: finely), Home goes to the start, + and - zoom, 0 shows all.
    """

    position_changed = Signal(float)
    """Seconds into the take."""
    playing_changed = Signal(bool)
    problem_changed = Signal(str)
    """Why nothing can be heard, or ``""``."""

    def __init__(self, player: Player, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.player = player
        self.deck = Deck(player, self)
        """The player's deck."""
        self._colours = colours
        self._shown: tuple[bool, float] = (False, 0.0)
        self._problem: str | None = None
        self._probing = False
        self._looked = False
        self._coming: ComingTake | None = None
        """The take that is being made."""
        self._streamed = ""
        """The side of the take that was heard last while it was made."""
        self._stale = False
        """Whether more of it came than is drawn."""
        self.setAccessibleName("Listen")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._make_widgets()
        self._lay_out()
        self._make_shortcuts()
        self._poll = QTimer(self, interval=_POLL_MILLISECONDS)
        self._poll.timeout.connect(self._refresh)
        self._poll.start()
        self.deck.changed.connect(self._show_deck)
        self.deck.analysed.connect(self._show_takes)
        self.deck.lent_changed.connect(self.setDisabled)
        self.set_colours(colours)
        self._show_deck()

    # --- What comes in ----------------------------------------------------------------------------------------------
    def set_warning(self, text: str) -> None:
        """A sentence of caution about the comparison, or ``""``."""
        self._caution.say(text)

    def set_difference(self, text: str) -> None:
        """Show the differences between A and B, as a sentence, or ``""``."""
        self._difference.setText(text)
        self._difference.setVisible(bool(text))

    def begin_take(self, side: str, rate: int) -> None:
        """A take for ``side`` is being made; :meth:`add_to_take` brings its sound at ``rate`` hertz."""
        self._coming, self._streamed = ComingTake(side, rate), side
        self._stale = False
        self._show_deck()

    def add_to_take(self, samples: np.ndarray) -> None:
        """More samples (n,) of the take that is being made."""
        if self._coming is not None:
            self._coming.add(samples)
            self._stale = True

    def end_take(self, finished: bool) -> None:
        """The take is complete, and is drawn as a whole once it was analysed; or it was given up."""
        if not finished:
            self._coming = None
            self._draw()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.plots.set_colours(colours)
        self._caution.set_colours(colours)
        self._device_problem.set_colours(colours)
        self._transport.set_colours(colours, self._shown[0])

    def connect_device(self) -> None:
        """Look for the audio device in the background and open it; again after it was lost."""
        if not self._probing:
            self._probing = self._looked = True
            self._device_problem.allow_retry(False)
            self.deck.analyser.run(probe, self._open_device)

    # --- Building ---------------------------------------------------------------------------------------------------
    def _make_widgets(self) -> None:
        self._transport = TransportBar()
        self._transport.start_wanted.connect(self.deck.go_to_start)
        self._transport.play_wanted.connect(self.deck.toggle_play)
        self._transport.loop_wanted.connect(self._toggle_loop)
        self._transport.side_wanted.connect(self.deck.choose)
        self._transport.switch_wanted.connect(self.deck.switch)
        self._transport.matching_changed.connect(self._set_matching)
        self._difference = build.words(name="What differs")
        self._difference.hide()
        set_look(self._difference, "muted")
        self._caution, self._facts = Caution(), Facts()
        self._device_problem = DeviceProblem()
        self._device_problem.retry_wanted.connect(self.connect_device)
        self.plots = ComparisonPlots(self._colours)
        self.plots.sought.connect(self.deck.seek)
        self.plots.region_drawn.connect(lambda start, end: self.deck.set_loop((start, end)))
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
        deck = self.deck
        for key, slot in (
            ("A", lambda: deck.choose("A")),
            ("B", lambda: deck.choose("B")),
            ("X", deck.switch),
            ("Space", self._press_space),
            ("L", self._toggle_loop),
            ("[", lambda: deck.set_loop_end(0)),
            ("]", lambda: deck.set_loop_end(1)),
            ("Left", lambda: deck.move(-STEP_SECONDS)),
            ("Right", lambda: deck.move(STEP_SECONDS)),
            ("Shift+Left", lambda: deck.move(-SMALL_STEP_SECONDS)),
            ("Shift+Right", lambda: deck.move(SMALL_STEP_SECONDS)),
            ("Home", deck.go_to_start),
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
            self.deck.toggle_play()

    @Slot()
    def _toggle_loop(self) -> None:
        self.deck.toggle_loop(self.plots.seen)

    @Slot(bool)
    def _set_matching(self, matching: bool) -> None:
        self.deck.set_matching(matching)
        self._draw()

    # --- Showing ----------------------------------------------------------------------------------------------------
    @Slot()
    def _show_takes(self) -> None:
        self._coming = None
        takes = self.deck.analysis.takes
        self.plots.set_names(*(_name(take) for take in takes))
        for side, take in zip(SIDES, takes, strict=True):
            self._transport.show_name(side, None if take is None else _name(take))
        self._draw()

    def _draw(self) -> None:
        """Draw the takes as loud as they are heard."""
        deck = self.deck
        analysis = deck.analysis
        picture_a, picture_b = (
            None if take is None else Picture(take.samples * np.float32(gain), take.sample_rate, mel + np.log(gain))
            for take, mel, gain in zip(analysis.takes, analysis.mels, deck.gains, strict=True)
        )
        if self._coming is not None and self._coming.picture is not None:
            shown = {"A": picture_a, "B": picture_b, self._coming.side: self._coming.picture}
            self.plots.set_pictures(shown["A"], shown["B"], f"Take {self._coming.side} is being made.")
            self._stale = False
            return
        take_a, take_b = analysis.takes
        reason = ""
        if take_a is not None and take_b is not None:
            if deck.comparison.mode is Mode.RESTART:
                reason = "The takes have different timing: a difference would mean nothing."
            elif take_a.sample_rate != take_b.sample_rate:
                reason = "The takes have different sample rates: no difference to show."
        self.plots.set_pictures(picture_a, picture_b, reason)
        self.plots.set_loop(deck.loop)

    @Slot()
    def _refresh(self) -> None:
        """Follow the player. Called 30 times a second."""
        if self.deck.lent:
            return
        problem = self.player.problem
        if problem != self._problem and not self._probing:
            self._show_problem(problem)
        self.deck.load_after_stream()
        playing, position, underruns = self.player.playing, self.player.position, self.player.underruns
        was_playing, was_at = self._shown
        self._shown = playing, position
        if playing != was_playing:
            self._transport.show_playing(playing)
            self.playing_changed.emit(playing)
        if position != was_at:
            self.position_changed.emit(position)
        streaming = self.player.streaming
        if self._stale and self.isVisible():
            self._draw()
        alone = streaming and self.player.comparison.mode is Mode.ALONE
        if self.isVisible() and position != was_at and not alone:
            self.plots.set_position(position)
        self._facts.show_underruns(underruns, self.player.starvations)
        self._transport.show_time(f"{position:.2f} s" if streaming else f"{position:.2f} / {self.deck.duration:.2f} s")

    def _show_problem(self, problem: str) -> None:
        if problem and self.player.mixer.state.playing:
            self.player.pause()
        self._problem = problem
        # Before anyone looked for a device there is nothing to complain about.
        self._device_problem.say(problem, bool(problem) and self._looked)
        self._transport.allow_playing(not problem)
        self.problem_changed.emit(problem)

    @Slot()
    def _show_deck(self) -> None:
        """Show choice, takes, loop and gains."""
        deck = self.deck
        there = [side for side, take in deck.takes.items() if take is not None]
        streams = self.player.streaming and self.player.comparison.mode is Mode.STREAM
        heard = self._streamed if streams and self._streamed else deck.heard
        self._transport.show_sides(heard, there)
        heard = heard if streams or heard in there else ""
        self.plots.set_heard(SIDES.index(heard) if heard else None)
        self._transport.show_loop(deck.loop)
        self.plots.set_loop(deck.loop)
        parts = [
            f"{side} {_decibels(gain)}"
            for side, take, gain in zip(SIDES, deck.analysis.takes, deck.gains, strict=True)
            if take is not None
        ]
        short = "" if deck.analysis.exact else "Measured without gating: a take is shorter than 0.4 s."
        self._transport.show_gains("   ".join(parts), short)
        active = self.player.comparison
        titles = {Mode.SYNC: "In sync", Mode.RESTART: "Restart", Mode.STREAM: "Streaming", Mode.ALONE: "Single"}
        told = deck.complete or active.mode in (Mode.STREAM, Mode.ALONE)
        self._facts.show_mode(titles[active.mode], active.reason if told else "")
        self._refresh()

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
        self.deck.shut_down(wait=not self._probing)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.shut_down()
        super().closeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.EnabledChange and not self.isEnabled() and not self.deck.lent:
            self.player.pause()
        super().changeEvent(event)


def _name(take: Take | None) -> str:
    return "" if take is None else take.label or take.text


def _decibels(gain: float) -> str:
    return f"{signed(20 * np.log10(gain), '+')} dB"
