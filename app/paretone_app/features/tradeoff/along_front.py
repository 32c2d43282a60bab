"""What is done along the front: hearing one sentence by each setting in turn, or by the one that the user walks to,
marking where a difference begins to be heard, and setting up the blind tests that find it, or rank what is shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QUndoStack

from paretone.errors import SettingError
from paretone.listening.trials import RANKING, STAIRCASE
from paretone_app.features.lab.presenter import LabPresenter
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.tradeoff.front_row import FrontRow, spoken_front
from paretone_app.features.tradeoff.model.limits import Crossing
from paretone_app.features.tradeoff.model.words import playing_words
from paretone_app.listening.preference import FEWEST_RANKED, MOST_RANKED
from paretone_app.state.editing import Edit
from paretone_app.widgets.screen_readers import announce

if TYPE_CHECKING:
    from paretone_app.features.tradeoff.model.points import Point
    from paretone_app.features.tradeoff.panel import TradeoffPanel


_LOOK_MILLISECONDS = 30


class AlongFront(QObject):
    """Between the panel, the player and the lab."""

    mark_wanted = Signal()
    """The listener hears otherwise than before: see :meth:`mark`."""

    def __init__(
        self, panel: TradeoffPanel, row: FrontRow, player: PlayerPresenter, lab: LabPresenter, undo: QUndoStack
    ) -> None:
        super().__init__(panel)
        self._panel, self.row, self._player, self._lab = panel, row, player, lab
        self._undo = undo
        self._at = ""
        """The point that is heard."""
        self._arrived = ""
        """The point that was just walked to, in this turn of the event loop."""
        self._walks = False
        """Whether it goes from point to point by itself: until the end, or until the user walks."""
        self._goes = False
        """Whether the point that is being chosen is one that it went to by itself."""
        self.pace = QTimer(self, interval=_LOOK_MILLISECONDS)
        """Looks whether the sentence has ended."""
        self.pace.timeout.connect(self._go_on)
        self._step: Crossing | None = None
        """The last step from one point of the row to another, as it would be marked."""
        self.crossings: tuple[Crossing, ...] = ()
        panel.chosen.connect(self._follow)
        panel.plot.mark_wanted.connect(self.mark_wanted)
        panel.foot.mark_wanted.connect(self.mark_wanted)
        row.began.connect(self._begin)
        row.changed.connect(self._show_row)
        row.arrived.connect(self._arrive)

    @property
    def on(self) -> bool:
        """Whether the front is played."""
        return self.row.on

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
        current, sound = self._panel.plot.current, self._panel.details.sound
        front = spoken_front(self._panel.scene, current)
        if sound is None or current not in front:
            sound = next(one.sounds[0] for one in front if one.sounds)
        self.row.begin(front, current if current in front else None, sound.spoken)

    @Slot()
    def _begin(self) -> None:
        self._at, self._step, self._walks = self.row.at, None, True
        self.pace.start()
        self._show_at(self._at)
        self._panel.plot.setFocus()

    def _show_at(self, key: str) -> None:
        self._goes = True
        self._panel.plot.choose(key)
        self._goes = False

    @Slot()
    def _go_on(self) -> None:
        """At the end of the sentence, go to the next point; after the last one, fall silent."""
        if not self._walks or not self.on:
            self.pace.stop()
            return
        if not self.row.at_end:
            return
        following = self.row.next_heard()
        if following:
            self._show_at(following)
            self._note_step(next(one for one in self.row.front if one.key == following))
            self.row.begin_at(following)
        else:
            self.pace.stop()
            self._walks = False
            self.toggle()
            announce(self._panel.plot, "The end of the front.")

    @Slot()
    def _show_row(self) -> None:
        count, whole, remarks = len(self.row.front), len(self._panel.scene.walk), self.row.remarks
        if self.on and self._walks:
            remarks = (playing_words(count, whole), *remarks)
        self._panel.show_front_playing(self.on, remarks)

    @Slot()
    def _follow(self) -> None:
        """Hear the point that was chosen, if it is of the row."""
        point = self._panel.plot.current
        if self._goes:
            return
        if self.on and point is not None and any(one.key == point.key for one in self.row.front):
            if self._walks:
                self._walks = False
                self.row.repeat()
                self._show_row()
            self._arrived = point.key
            QTimer.singleShot(0, self, self._settle)
            if self.row.go_to(point.key):
                self._note_step(point)

    @Slot(str)
    def _arrive(self, key: str) -> None:
        """A point that was walked to is heard only now."""
        self._note_step(next(one for one in self.row.front if one.key == key))

    @Slot()
    def _settle(self) -> None:
        self._arrived = ""

    def has_arrived(self, point: Point) -> bool:
        """Whether ``point`` was walked to just now, and sounds for that reason: a click chooses and asks to hear."""
        return self.on and point.key == self._arrived

    # --- Marking what is heard ----------------------------------------------------------------------------------------
    def _note_step(self, after: Point) -> None:
        before, self._at = self._at, after.key
        if before != after.key:
            other = next(one for one in self.row.front if one.key == before)
            faster = _slowness(after) < _slowness(other)
            self._step = Crossing(before, after.key, faster)
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
        points = self._panel.scene.points
        front = [one for one in spoken_front(self._panel.scene, self._panel.plot.current) if one.sounds]
        plain = [one for one in points if one.folder == front[0].folder and not one.techniques and one.sounds]
        self._lab.propose(STAIRCASE, [one.sounds[0].take for one in (*plain[:1], *front)])

    def rank(self) -> None:
        """Set up a blind ranking of the points that are shown. Raises :class:`SettingError` if they are too many, or
        too few with audio."""
        spoken = {one.setting: one for one in self._panel.scene.points if one.sounds and not one.published}
        if not FEWEST_RANKED <= len(spoken) <= MOST_RANKED:
            raise SettingError(
                f"{FEWEST_RANKED} to {MOST_RANKED} settings with audio can be ranked; {len(spoken)} are shown. Brush "
                "on Parallel axes, or filter, until as many are left."
            )
        self._lab.propose(RANKING, [one.sounds[0].take for one in spoken.values()])


def _slowness(point: Point) -> float:
    """Its real-time factor; infinite without one."""
    figure = point.figures.get("real_time_factor")
    return math.inf if figure is None else figure.value
