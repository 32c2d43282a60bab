"""What is done along the front: hearing one sentence by the setting that the user walks to, round and round, marking
where a difference begins to be heard, and setting up the blind tests that find it, or rank what is shown."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QUndoStack

from app.audio.sound import Sound
from app.features.lab.presenter import LabPresenter
from app.features.player.presenter import PlayerPresenter
from app.features.tradeoff.model.known_points import KnownPoints
from app.features.tradeoff.model.limits import Crossing
from app.listening.ranking import FEWEST, MOST
from app.state.differences import keeps_timing
from app.state.undo import Edit
from app.widgets.screen_readers import announce
from engine.errors import PlainError, SettingError
from engine.listening.trials import RANKING, STAIRCASE

if TYPE_CHECKING:
    from app.features.tradeoff.model.points import Point
    from app.features.tradeoff.panel import TradeoffPanel


class AlongFront(QObject):
    """Between the panel, the player and the lab."""

    changed = Signal()
    """The front is played from now on, or no longer."""
    mark_wanted = Signal()
    """The listener hears otherwise than before: see :meth:`mark`."""
    failed = Signal(str)
    """A sentence on audio that could not be read."""

    def __init__(
        self,
        panel: TradeoffPanel,
        known: KnownPoints,
        player: PlayerPresenter,
        lab: LabPresenter,
        undo: QUndoStack,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._panel, self._known, self._player, self._lab = panel, known, player, lab
        self._undo = undo
        self._keys: tuple[str, ...] = ()
        """Of the points of the row in the player."""
        self._slowness: dict[str, float] = {}
        """Their real-time factors."""
        self._at = ""
        """That which is heard."""
        self._row: tuple[Sound, ...] = ()
        self._reading = 0
        self._arrived = ""
        """The point that was just walked to, in this turn of the event loop."""
        self._on = False
        self._step: Crossing | None = None
        """The last step from one point of the row to another, as it would be marked."""
        self.crossings: tuple[Crossing, ...] = ()
        panel.chosen.connect(self._follow)
        panel.plot.mark_wanted.connect(self.mark_wanted)
        panel.foot.mark_wanted.connect(self.mark_wanted)
        player.playing.changed.connect(self._note)

    @property
    def on(self) -> bool:
        """Whether the row is in the player."""
        return bool(self._row) and self._player.deck.row is self._row

    # --- Which points -------------------------------------------------------------------------------------------------
    def _front(self) -> list[Point]:
        """The points of the front that have audio: of the current point's study, or of the one with most points on the
        front. Raises :class:`SettingError` if there are none."""
        shown, current = self._panel.scene, self._panel.plot.current
        spoken = [shown.points[place] for place in shown.walk if shown.points[place].sounds]
        if not spoken:
            raise SettingError("No setting on the front has audio, so nothing along it can be heard.")
        own = current.folder if current in spoken else Counter(one.folder for one in spoken).most_common(1)[0][0]
        return [one for one in spoken if one.folder == own]

    # --- Playing it ---------------------------------------------------------------------------------------------------
    def toggle(self) -> None:
        """Play the front, or fall silent. Raises :class:`PlainError` when it cannot be played."""
        if self.on:
            self._player.deck.stop()
            self._player.deck.leave_sound()
        else:
            self._play()

    def _play(self) -> None:
        if reason := self._player.why_not_hear():
            raise SettingError(f"The front cannot be played: {reason}")
        front = self._front()
        current, sound = self._panel.plot.current, self._panel.details.sound
        sentence = (sound if sound is not None and current in front else front[0].sounds[0]).spoken
        row = [(one, found) for one in front for found in one.sounds if found.spoken == sentence]
        if len(row) < 2:
            raise SettingError(
                "Only one setting on the front has spoken this sentence; choose another one, or Hear it."
            )
        wanted = next((at for at, (one, _) in enumerate(row) if one is current), 0)
        self._reading += 1
        number, player = self._reading, self._player.player
        load = self._known.load_audio()

        def read() -> tuple[Sound, ...]:
            made = []
            for place, (point, found) in enumerate(row, start=1):
                samples, rate = load(found.take)
                title = f"Front, {place} of {len(row)} · {point.title} · {point.model}"
                one = Sound(samples, rate, title, found.text, found.take)
                player.prepare(samples, rate)
                _ = one.gain, one.envelope  # They take a moment, and are kept.
                made.append(one)
            return tuple(made)

        aligned = all(point.setting is not None and keeps_timing(point.setting) for point, _ in row)
        keys = tuple(point.key for point, _ in row)
        self._slowness = {point.key: _slowness(point) for point, _ in row}
        self._player.deck.analyser.run(read, lambda made: self._begin(number, keys, made, wanted, aligned))

    def _begin(
        self, number: int, keys: tuple[str, ...], made: tuple[Sound, ...] | BaseException, wanted: int, aligned: bool
    ) -> None:
        if isinstance(made, PlainError):
            self.failed.emit(str(made))
        elif isinstance(made, BaseException):
            raise made
        elif number == self._reading:
            current = self._panel.plot.current
            at = keys.index(current.key) if current is not None and current.key in keys else wanted
            self._keys, self._row = keys, made
            self._player.hear_row(made, at, aligned)
            self._at, self._step = keys[at], None
            self._panel.plot.choose(keys[at])
            self._panel.plot.setFocus()
            self._note()

    @Slot()
    def _follow(self) -> None:
        """Hear the point that was chosen, if it is of the row."""
        point = self._panel.plot.current
        if self.on and point is not None and point.key in self._keys:
            self._player.deck.go_in_row(self._keys.index(point.key))
            self._arrived = point.key
            self._note_step(point.key)
            QTimer.singleShot(0, self, self._settle)

    @Slot()
    def _settle(self) -> None:
        self._arrived = ""

    def has_arrived(self, point: Point) -> bool:
        """Whether ``point`` was walked to just now, and sounds for that reason: a click chooses and asks to hear."""
        return self.on and point.key == self._arrived

    @Slot()
    def _note(self) -> None:
        if self.on != self._on:
            self._on = self.on
            self._row = self._row if self._on else ()
            self.changed.emit()

    # --- Marking what is heard ----------------------------------------------------------------------------------------
    def _note_step(self, after: str) -> None:
        before, self._at = self._at, after
        if before != after:
            faster = self._slowness[after] < self._slowness[before]
            self._step = Crossing(before, after, faster)
            self._panel.foot.show_direction(faster)

    def mark(self) -> None:
        """The listener hears a difference now, or no longer. Raises :class:`SettingError` before there was a step."""
        if not self.on:
            raise SettingError("Play the front first (Ctrl+9), and walk along it.")
        if self._step is None:
            raise SettingError("Walk along the front first: what is marked is the step after which you hear otherwise.")
        text = "mark where a difference is heard" if self._step.heard else "mark where it is no longer heard"
        self._undo.push(Edit(text, self.crossings, (*self.crossings, self._step), self._put))

    def _put(self, crossings: tuple[Crossing, ...]) -> None:
        self.crossings = crossings
        self._panel.show_crossings(crossings)
        announce(self._panel.plot, self._panel.foot.remarks)

    # --- Finding what is heard ----------------------------------------------------------------------------------------
    def find(self) -> None:
        """Set up a staircase along the front. Raises :class:`SettingError` if there is no audio of it."""
        front, points = self._front(), self._panel.scene.points
        plain = [one for one in points if one.folder == front[0].folder and not one.techniques and one.sounds]
        self._lab.propose(STAIRCASE, [one.sounds[0].take for one in (*plain[:1], *front)])

    def rank(self) -> None:
        """Set up a blind ranking of the points that are shown. Raises :class:`SettingError` if they are too many, or
        too few with audio."""
        spoken = {one.setting: one for one in self._panel.scene.points if one.sounds and not one.published}
        if not FEWEST <= len(spoken) <= MOST:
            raise SettingError(
                f"{FEWEST} to {MOST} settings with audio can be ranked; {len(spoken)} are shown. Brush on Parallel "
                "axes, or filter, until as many are left."
            )
        self._lab.propose(RANKING, [one.sounds[0].take for one in spoken.values()])


def _slowness(point: Point) -> float:
    """Its real-time factor; infinite without one."""
    figure = point.figures.get("real_time_factor")
    return math.inf if figure is None else figure.value
