"""The window's player: its device, keys and bar, and announcements for screen readers."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QButtonGroup,
    QComboBox,
    QGroupBox,
    QLineEdit,
    QMenuBar,
    QPlainTextEdit,
    QScrollArea,
    QTabBar,
    QTextEdit,
    QWidget,
)
from shiboken6 import isValid

from paretone.audio.sound_system import Sound as SoundSystem
from paretone.audio.sound_system import probe
from paretone.errors import DeviceError
from paretone_app.audio.deck import Deck
from paretone_app.audio.player import Player
from paretone_app.features.player.panel import PlayerPanel, WaveStrip
from paretone_app.numbers import fixed, with_sign
from paretone_app.shell.bridge import Background
from paretone_app.shell.colours import Colours
from paretone_app.state.playing import LANES, SIDES, Heard, Origin, Playing, setting_title
from paretone_app.widgets.action import Action
from paretone_app.widgets.screen_readers import announce


class Playback(QObject):
    problem_changed = Signal(str)
    probing_changed = Signal(bool)

    def __init__(self, player: Player, playing: Playing, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.player = player
        self.playing = playing
        self.deck = Deck(player, self)
        self.looked = False
        """Whether a device was searched for; until then, a missing one is not reported."""
        self.probing = False
        self._problem: str | None = None
        self._probe = Background("sound", self)
        self._stream = Heard()
        self._poll = QTimer(self, interval=33)
        self._poll.timeout.connect(self.follow)
        self._poll.start()
        self.deck.changed.connect(self.follow)
        self.deck.lent_changed.connect(lambda _: self.follow())

    def begin_stream(self, rate: int, title: str, detail: str, letter: str) -> None:
        """Play a take while it streams, at ``rate`` hertz; ``letter``: its side, or ``""``."""
        self._stream = Heard(Origin.STREAM, title, detail, letter)
        self.deck.begin_stream(rate, letter)

    def follow(self) -> None:
        deck, player, playing = self.deck, self.player, self.playing
        if deck.lent:
            playing.show(Heard(Origin.TEST))
            return
        problem = player.problem
        if problem != self._problem and not self.probing:
            self._tell_problem(problem)
        deck.load_when_silent()
        position, found = player.position, self._source()
        own = found.own_seconds or deck.length
        playing.show(replace(found, sounding=player.playing, seconds=deck.length, own_seconds=own, loop=deck.loop))
        playing.move(position)

    def _source(self) -> Heard:
        deck, sound = self.deck, self.deck.sound
        if sound is not None:
            sides = {take.id: side for side, take in reversed(deck.takes.items()) if take is not None}
            letter, start = sound.part_of or (sides.get(sound.key, ""), 0.0)
            return Heard(Origin.SOUND, sound.title, sound.detail, letter, start, sound.key)
        if self.player.streaming:
            return self._stream
        if (take := deck.takes[deck.heard]) is None:
            return Heard()
        title = setting_title(take.setting, f"{'Take' if deck.heard in SIDES else 'Lane'} {deck.heard}")
        return Heard(Origin.COMPARED, title, take.text, deck.heard, key=take.id, own_seconds=take.seconds)

    def connect_device(self) -> None:
        """Find and open the audio device in the background; also after it was lost."""
        if not self.probing:
            self.probing = self.looked = self.player.opening = True
            self.probing_changed.emit(True)
            self._probe.run(probe, self._open_device)  # Meanwhile takes are analysed.

    def _open_device(self, found: SoundSystem | BaseException) -> None:
        self.probing = self.player.opening = False
        self.probing_changed.emit(False)
        if isinstance(found, BaseException):
            raise found
        try:
            self.player.open(found)
        except DeviceError as error:
            self._tell_problem(str(error))
        self.follow()

    def _tell_problem(self, problem: str) -> None:
        if problem and self.player.mixer.state.playing:
            self.player.pause()
        self._problem = problem
        self.problem_changed.emit(problem)

    def shut_down(self) -> None:
        self._poll.stop()
        self._probe.shut_down(wait=False)
        self.deck.shut_down()


STEP_SECONDS = 0.25
SMALL_STEP_SECONDS = 0.02
_MOVES = frozenset({"Left", "Right", "Shift+Left", "Shift+Right", "Home"})
_SPACE = frozenset({"Space"})
_LANE_KEYS = frozenset("12345678")
_ALL = frozenset({"A", "B", "X", "S", "L", "M", "N", "[", "]"}) | _LANE_KEYS | _MOVES | _SPACE


class PlayerKeys(QObject):
    """Shortcuts of ``window``. A focused widget that uses a key itself, such as a text field, keeps it."""

    def __init__(self, window: QWidget, deck: Deck, others: Mapping[str, Callable[[], object]]) -> None:
        """``others``: functions of further keys, M and N."""
        super().__init__(window)
        self._deck = deck
        lanes = {str(number): partial(deck.choose, lane) for number, lane in enumerate(LANES, start=1)}
        actions: dict[str, Callable[[], object]] = {
            **lanes,
            **{side: partial(deck.choose, side) for side in SIDES},
            "X": deck.switch,
            "Space": deck.toggle_play,
            "S": deck.stop,
            "L": deck.toggle_loop,
            "[": lambda: deck.set_loop_end(0),
            "]": lambda: deck.set_loop_end(1),
            "Left": lambda: deck.move(-STEP_SECONDS),
            "Right": lambda: deck.move(STEP_SECONDS),
            "Shift+Left": lambda: deck.move(-SMALL_STEP_SECONDS),
            "Shift+Right": lambda: deck.move(SMALL_STEP_SECONDS),
            "Home": deck.go_to_start,
            **others,
        }
        self._shortcuts = {key: QShortcut(QKeySequence(key), window, do) for key, do in actions.items()}
        deck.lent_changed.connect(lambda _: self._leave_keys(None, QApplication.focusWidget()))
        if isinstance(application := QApplication.instance(), QApplication):
            application.focusChanged.connect(self._leave_keys)

    def _leave_keys(self, _before: QWidget | None, focus: QWidget | None) -> None:
        """Disable the shortcuts of keys that the focused widget needs; during a listening test, all."""
        kept = _ALL if self._deck.lent else own_keys(focus)
        for key, shortcut in self._shortcuts.items():
            if isValid(shortcut):
                shortcut.setEnabled(key not in kept)


def own_keys(widget: QWidget | None) -> frozenset[str]:
    """Keys of the player that ``widget`` uses itself. Painted widgets claim theirs by their own event handlers."""
    match widget:
        case None | WaveStrip():
            return frozenset()
        case QPlainTextEdit() | QTextEdit() if widget.isReadOnly():
            own = _MOVES
        case QLineEdit() | QPlainTextEdit() | QTextEdit() | QAbstractSpinBox() | QComboBox() | QMenuBar():
            own = _ALL
        case QAbstractItemView():
            # Letters search in the list.
            own = _ALL - {"[", "]"} - _LANE_KEYS
        case QAbstractButton():
            # The arrow keys move between the buttons of an exclusive group.
            group: QButtonGroup | None = widget.group()
            several = widget.autoExclusive() or (group is not None and group.exclusive())
            own = _SPACE | (_MOVES if several else frozenset())
        case QGroupBox() if widget.isCheckable():
            own = _SPACE
        case QAbstractSlider() | QTabBar() | QScrollArea():
            own = _MOVES
        case _:
            own = frozenset()
    return own | {key for action in widget.actions() for key in _ALL if QKeySequence(key) in action.shortcuts()}


class PlayerAnnouncements(QObject):
    """Announces changes of playback on behalf of the player's bar."""

    said = Signal(str)

    def __init__(self, playing: Playing, bar: QWidget) -> None:
        super().__init__(bar)
        self._playing, self._bar = playing, bar
        self._last = playing.now
        # Changes within this time are one: a chosen sound begins to play slightly later.
        self._soon = QTimer(self, singleShot=True, interval=80)
        self._soon.timeout.connect(self._say)
        playing.changed.connect(self._soon.start)

    def _say(self) -> None:
        before, now, sentence = self._last, self._playing.now, ""
        self._last = now
        other = (before.origin, before.key, before.title) != (now.origin, now.key, now.title)
        if other or now.sounding != before.sounding:
            sentence = f"Playing: {now.title}" if now.sounding else now.title if other else "Paused"
        elif now.loop != before.loop:
            ends = None if now.loop is None else [fixed(one, 2) for one in now.loop]
            sentence = "Loop off" if ends is None else f"Loop from {ends[0]} to {ends[1]} s"
        if sentence and Origin.TEST not in (before.origin, now.origin) and now.origin is not Origin.NOTHING:
            announce(self._bar, sentence)
            self.said.emit(sentence)


class PlayerControl(QObject):
    def __init__(self, window: QWidget, playing: Playing, colours: Colours, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.playing = playing
        self.playback = Playback(Player(), playing, self)
        self.deck = self.playback.deck
        deck, playback = self.deck, self.playback

        def action(title: str, key: str, do: Callable[[], object], checkable: bool = False) -> Action:
            made = Action(title, f"{title} ({key})", parent=self, checkable=checkable)
            made.triggered.connect(lambda: do())
            return made

        actions = {
            "start": action("Go to the start", "Home", deck.go_to_start),
            "play": action("Play", "Space", deck.toggle_play),
            "stop": action("Stop", "S", deck.stop),
            "loop": action("Loop", "L", deck.toggle_loop, checkable=True),
            "switch": action("Switch between A and B", "X", deck.switch),
            "reconnect": action("Reconnect", "N", playback.connect_device),
        }
        actions["reconnect"].set_tip("Look for an audio device again (N)")
        bar = self.bar = PlayerPanel(colours, actions)
        self.keys = PlayerKeys(window, self.deck, {"M": bar.match.toggle, "N": bar.reconnect})
        self.announcements = PlayerAnnouncements(playing, self.bar)
        bar.side_chosen.connect(deck.choose)
        bar.match.toggled.connect(deck.set_matching)
        bar.strip.sought.connect(deck.seek)
        bar.strip.region_drawn.connect(lambda start, end: deck.set_loop((start, end)))
        bar.disabled.connect(lambda: None if deck.lent else deck.player.pause())
        deck.changed.connect(self._show_deck)
        deck.analysed.connect(self._show_deck)
        playback.problem_changed.connect(lambda problem: bar.show_problem(problem, playback.looked))
        playback.probing_changed.connect(bar.show_probing)
        playing.changed.connect(self._show_heard)
        playing.moved.connect(bar.show_position)
        self._show_deck()

    def _show_deck(self) -> None:
        """Show the takes, their gains, and the waveform of the current sound."""
        deck = self.deck
        parts = [f"{lane} {with_sign(20 * np.log10(deck.gain_of(lane)), '+')} dB" for lane in deck.analysed_takes]
        short = "" if deck.analysis.exact else "Measured without gating: a take is shorter than 0.4 s."
        self.bar.show_gains(parts, short)
        for side in SIDES:
            title = f"No take {side} yet"
            if (take := deck.takes[side]) is not None:
                title = f"{setting_title(take.setting, f'Take {side}')} ({side})"
            self.bar.sides.buttons[side].setToolTip(title)
        self._show_heard()

    def _show_heard(self) -> None:
        deck, now = self.deck, self.playing.now
        self.bar.show_heard(now, [lane for lane, take in deck.takes.items() if take is not None])
        self.bar.strip.set_envelope(None if deck.lent else deck.envelope, deck.gain)
        self.bar.show_position(self.playing.position)
