"""Play the front, one sentence by each setting in turn; mark where a difference begins; set up blind tests."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QUndoStack

from paretone.errors import SettingError
from paretone.listening.trials import RANKING, STAIRCASE
from paretone.setting.take import Take
from paretone_app.audio.sound import Sound, is_silent
from paretone_app.features.lab.presenter import LabPresenter
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.tradeoff.scene import Crossing
from paretone_app.features.tradeoff.words import playing_words
from paretone_app.listening.preference import FEWEST_RANKED, MOST_RANKED
from paretone_app.numbers import counted
from paretone_app.results.points import candidate_key
from paretone_app.results.reader import Results
from paretone_app.shell.bridge import arrived
from paretone_app.state.availability import require
from paretone_app.state.differences import keeps_timing
from paretone_app.state.editing import Edit
from paretone_app.state.synthesis import Wanted, wanted_take
from paretone_app.widgets.screen_readers import announce

if TYPE_CHECKING:
    from paretone_app.features.tradeoff.panel import TradeoffPanel
    from paretone_app.features.tradeoff.scene import Scene
    from paretone_app.results.points import Point
    from paretone_app.state.app_state import AppState


Spoken = tuple[str, str, int]
"""Text, voice and seed."""


def spoken_front(shown: Scene, current: Point | None) -> list[Point]:
    """The front's points in one study: the current point's, or the one with most points on the front. Raises
    :class:`SettingError` if none has audio."""
    walk = [shown.points[place] for place in shown.walk]
    spoken = [one for one in walk if one.sounds]
    if not spoken:
        raise SettingError("No setting on the front has audio, so nothing along it can be heard.")
    folders = Counter(one.folder for one in spoken)
    own = folders.most_common(1)[0][0]
    if current is not None and current in walk and current.folder in folders:
        own = current.folder
    return [one for one in walk if one.folder == own]


class FrontRow(QObject):
    """The sounds in the player while the front is played, one per setting; missing takes are made, nearest first."""

    began = Signal()
    """The row is in the player."""
    changed = Signal()
    """The row was loaded or left the player, or its remarks changed."""
    arrived = Signal(str)
    """Key of a requested point whose take is now ready and heard."""
    failed = Signal(str)
    """Audio could not be read, as a sentence."""

    def __init__(self, results: Results, player: PlayerPresenter, state: AppState, parent: QObject) -> None:
        super().__init__(parent)
        self._results, self.player, self._state, self._making = results, player, state, state.making
        self.front: dict[str, Point] = {}
        """Its points by key, including those without audio yet."""
        self._sentence: Spoken = "", "", 0
        self._made: dict[str, Sound] = {}  # By point key.
        self._row: tuple[Sound, ...] = ()
        self.at = ""
        """Key of the requested point."""
        self._reading = 0
        self._on = False
        self._no_more = ""  # Why missing takes are not made, as a sentence.
        player.playing.changed.connect(self._note)
        self._making.take_made.connect(self._add)
        self._making.changed.connect(self._look_ahead)

    @property
    def on(self) -> bool:
        return bool(self._row) and self.player.deck.row is self._row

    @property
    def at_end(self) -> bool:
        """Whether the sentence ended, rather than was paused; its last samples may still be on their way."""
        sound, player = self.player.deck.sound, self.player.player
        if not self.on or sound is None or player.busy:
            return False
        return player.mixer.state.position / player.rate >= sound.seconds - 0.005

    @property
    def remarks(self) -> tuple[str, ...]:
        lacking, heard = len(self.front) - len(self._made), self._made.get(self.at)
        if self.on and heard is not None and is_silent(heard.samples):
            return ("This take is silent: there is nothing to hear in it.",)
        if not self.on or not lacking:
            return ()
        here = "This setting has not said the sentence yet. " if heard is None else ""
        which = f"{here}{counted(lacking, 'setting', 'settings')} on the front"
        if self._no_more:
            return (f"{which} cannot say it: {self._no_more}",)
        return (f"{which} still to say it, the nearest first, while nothing else is made.",)

    def begin(self, front: Iterable[Point], current: Point | None, sentence: Spoken) -> None:
        """Play ``sentence`` with ``front``. Raises :class:`PlainError` if fewer than two settings can speak it."""
        self.front, self._sentence, self._made = {one.key: one for one in front}, sentence, {}
        found = {key: self._results.sound_of(one, sentence) for key, one in self.front.items()}
        spoken = {key: sound for key, sound in found.items() if sound is not None}
        if len(spoken) < 2 and not (spoken and self._wanted(key for key in found if key not in spoken)):
            only = "Only one setting on the front has spoken this sentence; choose another one, or Hear it."
            raise SettingError(f"{only} {self._no_more}")
        self._reading += 1
        number, player, load, named = self._reading, self.player.player, self._results.load_audio(), self._titles()
        self.at = current.key if current is not None else next(iter(spoken))

        def read() -> dict[str, Sound]:
            made = {}
            for key, sound in spoken.items():
                samples, rate = load(sound.take)
                made[key] = Sound(samples, rate, named[key], sound.text, sound.take).worked_out()
                player.prepare(samples, rate)
            return made

        self.player.deck.analyser.background.run(read, lambda made: self._begin(number, made))

    def _begin(self, number: int, made: dict[str, Sound] | BaseException) -> None:
        if number != self._reading or not arrived(made, self.failed.emit):
            return
        self._made = made
        self.at = self.at if self.at in made else next(iter(made))
        self._row, at = self._arranged()
        aligned = all(one.setting is not None and keeps_timing(one.setting) for one in self.front.values())
        self.player.hear_row(self._row, at, aligned, repeat=False)
        self._note()
        self.began.emit()
        self._look_ahead()

    def _titles(self) -> dict[str, str]:
        """Titles of the front's points in the player, by point key."""
        places, count = enumerate(self.front.items(), start=1), len(self.front)
        return {key: f"Front, {place} of {count} · {one.title} · {one.model}" for place, (key, one) in places}

    def _arranged(self) -> tuple[tuple[Sound, ...], int]:
        """The available sounds along the front, and the index of the heard one."""
        keys = [key for key in self.front if key in self._made]
        return tuple(self._made[key] for key in keys), keys.index(self.at) if self.at in keys else 0

    # --- Navigation ---------------------------------------------------------------------------------------------------
    def next_heard(self, by: int) -> str:
        """Key of the next point with audio to the right (``by`` 1) or to the left (−1); ``""`` after the last."""
        keys = list(self.front)[::by]
        return next((key for key in keys[keys.index(self.at) + 1 :] if key in self._made), "")

    @property
    def waits(self) -> bool:
        """Whether the take of the requested point is being made, or will be."""
        return self.at not in self._made and not self._no_more

    def again(self) -> None:
        self.player.player.seek(0.0)
        self.player.player.play()

    def begin_at(self, key: str) -> None:
        """Play a point that has audio from the beginning."""
        self.at = key
        self.player.deck.begin_in_row(self._arranged()[1])
        self._look_ahead()

    def go_to(self, key: str) -> bool:
        """Switch to the point ``key`` of the front as soon as its take is ready; returns whether it is ready now."""
        self.at = key
        if key in self._made:
            self.player.deck.go_in_row(self._arranged()[1])
        self._look_ahead()
        return key in self._made

    def _note(self) -> None:
        if self.on != self._on:
            self._on = self.on
            if not self._on:
                self._row = ()
                self._making.ahead(())
            self.changed.emit()

    # --- Takes made ahead ---------------------------------------------------------------------------------------------
    def _wanted(self, keys: Iterable[str]) -> list[Wanted]:
        """Requests for points to speak the sentence; if none can be made now, keep the reason."""
        text, voice, seed = self._sentence
        found, reason = [], ""
        for one in map(self.front.__getitem__, keys):
            try:
                if one.setting is None:
                    raise SettingError("It was measured by others, elsewhere.")
                seeded = replace(one.setting, seed=seed)
                setting, artefacts = self._results.prepared(seeded, self._results.table_of(one))
                asked = wanted_take(self._state.selection, text, voice, setting, artefacts)
            except SettingError as error:
                reason = str(error)
                continue
            if asked in self._making.problems:
                reason = self._making.problems[asked]
            else:
                found.append(asked)
        self._no_more = "" if found else reason
        return found

    def _look_ahead(self) -> None:
        """Request the missing takes, nearest to the current point first."""
        if self.on:
            keys = list(self.front)
            here = keys.index(self.at)
            lacking = ((abs(place - here), place) for place, key in enumerate(keys) if key not in self._made)
            self._making.ahead(self._wanted(keys[place] for _, place in heapq.nsmallest(8, lacking)))
            self.changed.emit()

    def _add(self, take: Take) -> None:
        if self.on and (take.text, take.voice, take.setting.seed) == self._sentence:
            candidate = candidate_key(take.setting)
            for key, point in self.front.items():
                if key not in self._made and point.candidate == candidate:
                    self._prepare(key, take)

    def _prepare(self, key: str, take: Take) -> None:
        number, title, player = self._reading, self._titles()[key], self.player.player

        def read() -> Sound:
            player.prepare(take.samples, take.sample_rate)
            return Sound(take.samples, take.sample_rate, title, take.text, take.id).worked_out()

        self.player.deck.analyser.background.run(read, lambda made: self._put(number, key, made))

    def _put(self, number: int, key: str, made: Sound | BaseException) -> None:
        if not arrived(made, self.failed.emit) or number != self._reading or not self.on or key in self._made:
            return
        heard = self.player.deck.sound
        self._made[key] = made
        self._row, at = self._arranged()
        # The current sound continues; if another is requested, switch to it.
        now = next(place for place, one in enumerate(self._row) if one is heard)
        self.player.deck.exchange_row(self._row, now)
        if key == self.at:
            self.player.deck.go_in_row(at)
            self.arrived.emit(key)
        self._look_ahead()


class AlongFront(QObject):
    """Connects the panel, the player and the lab."""

    def __init__(self, panel: TradeoffPanel, row: FrontRow, lab: LabPresenter, undo: QUndoStack) -> None:
        super().__init__(panel)
        self._panel, self.row, self._lab, self._undo = panel, row, lab, undo
        self._at = ""  # The point being heard.
        self._arrived = ""  # The point the user just moved to, in this turn of the event loop.
        self._by = 1  # Direction in which it goes on by itself: to the right, or where the user last moved.
        self._goes = False  # Whether the current change of point is automatic.
        self.pace = QTimer(self, interval=30)
        self.pace.timeout.connect(self._go_on)
        self._step: Crossing | None = None  # The last step between points of the row, to be marked.
        panel.chosen.connect(self._follow)
        row.began.connect(self._begin)
        row.changed.connect(self._show_row)
        row.arrived.connect(self._note_step)

    # --- Playing ------------------------------------------------------------------------------------------------------
    def toggle(self) -> None:
        """Play or stop the front. Raises :class:`PlainError` if it cannot be played."""
        if self.row.on:
            self.row.player.deck.stop()
            self.row.player.deck.leave_sound()
            return
        if reason := self.row.player.why_not_hear():
            raise SettingError(f"The front cannot be played: {reason}")
        current, sound = self._panel.plot.current, self._panel.details.sound
        front = spoken_front(self._panel.scene, current)
        if sound is None or current not in front:
            sound = next(one.sounds[0] for one in front if one.sounds)
        self.row.begin(front, current if current in front else None, sound.spoken)

    def _begin(self) -> None:
        self._at, self._step, self._by = self.row.at, None, 1
        self.pace.start()
        self._show_at(self._at)
        self._panel.plot.setFocus()

    def _show_at(self, key: str) -> None:
        self._goes = True
        self._panel.plot.choose(key)
        self._goes = False

    def _go_on(self) -> None:
        """At the end of the sentence, go to the next point; after the last one, stop."""
        if not self.row.on:
            self.pace.stop()
        elif not self.row.at_end:
            return
        elif self.row.waits:
            self.row.again()
        elif following := self.row.next_heard(self._by):
            self._show_at(following)
            self._note_step(following)
            self.row.begin_at(following)
        else:
            self.pace.stop()
            self.toggle()
            announce(self._panel.plot, "The end of the front.")

    def _show_row(self) -> None:
        count, whole, remarks = len(self.row.front), len(self._panel.scene.walk), self.row.remarks
        if self.row.on:
            remarks = (playing_words(count, whole), *remarks)
        self._panel.show_front_playing(self.row.on, remarks)

    def _follow(self) -> None:
        """Switch to the chosen point if it is in the row, and go on from there in the same direction."""
        point = self._panel.plot.current
        if self._goes or not self.row.on or point is None or point.key not in self.row.front:
            return
        keys = list(self.row.front)
        if step := keys.index(point.key) - keys.index(self.row.at):
            self._by = 1 if step > 0 else -1
        self._arrived = point.key
        QTimer.singleShot(0, self, self._settle)
        ended = self.row.at_end
        if self.row.go_to(point.key):
            self._note_step(point.key)
            if ended:  # Else what is gone to would end at once.
                self.row.begin_at(point.key)

    def _settle(self) -> None:
        self._arrived = ""

    def has_arrived(self, point: Point) -> bool:
        """Whether the user just moved to ``point``: a click both chooses it and asks to play it."""
        return self.row.on and point.key == self._arrived

    # --- Marking ------------------------------------------------------------------------------------------------------
    def _note_step(self, after: str) -> None:
        """Note the step to the point ``after``, now heard."""
        before, self._at = self._at, after
        if before != after:
            faster = _slowness(self.row.front[after]) < _slowness(self.row.front[before])
            self._step = Crossing(before, after, faster)
            self._panel.foot.show_direction(faster)

    def mark(self) -> None:
        """Mark that a difference is heard now, or no longer. Raises :class:`SettingError` before the first step."""
        if not self.row.on:
            raise SettingError("Play the front first (Ctrl+9), and walk along it.")
        if self._step is None:
            raise SettingError("Walk along the front first: what is marked is the step after which you hear otherwise.")
        text = "mark where a difference is heard" if self._step.heard else "mark where it is no longer heard"
        before = self._panel.crossings
        self._undo.push(Edit(text, before, (*before, self._step), self._put))

    def _put(self, crossings: tuple[Crossing, ...]) -> None:
        self._panel.crossings = crossings
        self._panel.show_remarks()
        announce(self._panel.plot, self._panel.foot.remarks.text())

    # --- Blind tests --------------------------------------------------------------------------------------------------
    def find(self) -> None:
        """Set up a staircase along the front. Raises :class:`SettingError` if the front has no audio."""
        points = self._panel.scene.points
        front = [one for one in spoken_front(self._panel.scene, self._panel.plot.current) if one.sounds]
        plain = [one for one in points if one.folder == front[0].folder and not one.techniques and one.sounds]
        self._lab.propose(STAIRCASE, [one.sounds[0].take for one in (*plain[:1], *front)])

    def why_not_rank(self) -> str:
        spoken = self._panel.scene.spoken
        if FEWEST_RANKED <= len(spoken) <= MOST_RANKED:
            return ""
        count = len(spoken) if len(spoken) <= MOST_RANKED else "more"
        return (
            f"{FEWEST_RANKED} to {MOST_RANKED} settings with audio can be ranked; {count} are shown. Brush on Parallel "
            "axes, or filter, until as many are left."
        )

    def rank(self) -> None:
        """Set up a blind ranking of the shown points. Raises :class:`SettingError` with :meth:`why_not_rank`."""
        require(self.why_not_rank())
        self._lab.propose(RANKING, self._panel.scene.spoken)


def _slowness(point: Point) -> float:
    """Real-time factor; infinite if unknown."""
    figure = point.figures.get("real_time_factor")
    return math.inf if figure is None else figure.value
