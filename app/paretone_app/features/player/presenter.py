"""The player's presenter: plays A and B, streams and other sounds, and lends the player to listening tests."""

from collections.abc import Sequence
from itertools import zip_longest

from PySide6.QtCore import Signal

from paretone.session.commands import Synthesise
from paretone.session.events import AudioReady, Event
from paretone_app.audio.player import Player
from paretone_app.audio.sound import Sound
from paretone_app.features.player.control import PlayerControl
from paretone_app.features.presenter import Presenter, Services
from paretone_app.shell.notices import Level
from paretone_app.state.differences import keeps_timing
from paretone_app.state.jobs import Job, Outcome
from paretone_app.state.playing import LANES, Origin, setting_title
from paretone_app.state.synthesis import STREAM_SIDES

_CHOOSE = {
    "": "",
    "A": "Choose take A first: press Baseline, or Set A in Takes.",
    "B": "Choose take B first: press Accelerated, or Set B in Takes.",
    (_NEITHER := "A and B"): "Make take A first: press Baseline.",
}
"""Why two takes cannot be compared, by the missing sides."""


class PlayerPresenter(Presenter):
    compared = Signal()
    problem_changed = Signal(str)
    """Why nothing can be heard, or ``""``."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        state = services.state
        self._streaming = 0
        self._left = 0
        """Job whose stream is not played, because another sound was chosen."""
        self._sounding = False
        self.control = PlayerControl(services.window, state.playing, services.theme.colours, self)
        self.playback, self.deck = self.control.playback, self.control.deck
        self.playback.problem_changed.connect(self._tell_audio_problem)
        self.playing = state.playing
        self.playing.changed.connect(self._note_listening)
        services.workspaces.put("player", self.control.bar)
        why_not = lambda: self.why_not_hear() if self.deck.lent else _CHOOSE[self._missing]  # noqa: E731
        self._actions.bind(self._actions.compare, self._compare, why_not)
        self._actions.bind(self._actions.play, self.deck.toggle_play, self._why_not_play)
        state.comparison.changed.connect(self._show_takes_to_hear)
        self._show_takes_to_hear()

    @property
    def player(self) -> Player:
        return self.playback.player

    def engine_starts(self) -> None:
        if not self.playback.looked:
            self.playback.connect_device()

    def refresh(self) -> None:
        self._actions.compare.refresh()
        self._actions.play.refresh()

    @property
    def _missing(self) -> str:
        """The sides without a take, as a key of ``_CHOOSE``."""
        compared = self._state.comparison
        sides = ("A", compared.take_a), ("B", compared.take_b)
        return " and ".join(side for side, take in sides if take is None)

    def _why_not_play(self) -> str:
        if self.deck.lent:
            return self.why_not_hear()
        return "" if self.deck.sound is not None or self._missing != _NEITHER else _CHOOSE[_NEITHER]

    def shut_down(self) -> None:
        self.playback.shut_down()

    def _show_takes_to_hear(self) -> None:
        unheard = self._state.jobs.find(self._left) is not None
        for lane, take in zip_longest(LANES, self._state.comparison.lanes):
            self.deck.set_take(lane, take, take is None or keeps_timing(take.setting), unheard)

    def _note_listening(self) -> None:
        now, sides = self.playing.now, (self._state.comparison.take_a, self._state.comparison.take_b)
        if now.sounding != self._sounding:
            self._sounding = now.sounding
            if now.sounding and all(take is not None for take in sides) and now.origin is Origin.COMPARED:
                self.compared.emit()

    def _tell_audio_problem(self, sentence: str) -> None:
        if sentence:
            self._notices.note(sentence, Level.WARNING)
        self.problem_changed.emit(sentence)

    def _compare(self) -> None:
        """Play A or B; during playback, switch to the other."""
        deck = self.deck
        if deck.sound is not None or self.player.playing:
            deck.switch()
        else:
            deck.toggle_play()
        self.compared.emit()

    def hear(self, side: str, seconds: float) -> None:
        """Play side ``"A"`` or ``"B"`` from ``seconds`` on; of a streaming take, the part received."""
        now = self.playing.now
        if now.origin is Origin.STREAM and now.letter == side:
            self.deck.seek(seconds)
            self.player.play()
        else:
            self.deck.hear_from(side, seconds)

    def hear_sound(self, sound: Sound) -> None:
        self.hear_row((sound,))

    def hear_row(self, sounds: Sequence[Sound], at: int = 0, aligned: bool = True, repeat: bool = True) -> None:
        """Play one of several sounds that can be switched; see :meth:`paretone_app.audio.deck.Deck.hear_row`."""
        self._left = self._streaming or self._left
        self._end_stream()
        self.deck.hear_row(sounds, at, aligned, repeat)
        self.refresh()

    def sounds(self, key: str) -> bool:
        """Whether the sound with this ``key`` is playing."""
        return self.deck.sound is not None and self.deck.sound.key == key and self.player.busy

    def why_not_hear(self) -> str:
        """Why nothing can be heard now, as a sentence, or ``""``."""
        return "A listening test is using the player." if self.deck.lent else self.player.problem

    def lend(self) -> Player:
        """Lend the player to a listening test, until :meth:`take_back`."""
        player = self.deck.lend()
        self.refresh()
        return player

    def take_back(self) -> None:
        self.deck.take_back()
        self.refresh()

    def follow(self, event: Event) -> None:
        if not isinstance(event, AudioReady) or event.job == self._left:
            return
        if self._streaming != event.job:
            job = self._state.jobs.find(event.job)
            if not self._plays(job):
                self._left = event.job
                return
            self._end_stream()
            self._streaming = event.job
            side = STREAM_SIDES.get(job.kind, "") if job is not None else ""
            title, text = f"Take {side}, streaming" if side else "Streaming", ""
            if job is not None and isinstance(job.command, Synthesise):
                title, text = setting_title(job.command.setting, title), job.command.text
            self.playback.begin_stream(event.sample_rate, title, text, side)
        self.deck.append(event.samples)
        self.playback.follow()

    def job_began(self, job: Job) -> None:
        if job.kind in STREAM_SIDES and self._plays(job):
            self.deck.expect_stream()

    def _plays(self, job: Job | None) -> bool:
        """Whether a take plays while it is made: at once if it had not to wait. Of those that waited only the last,
        and only if nothing else is heard."""
        if job is None or job.at_once or job.kind not in STREAM_SIDES:
            return True
        others = any(one.kind in STREAM_SIDES for one in self._state.jobs.waiting)
        return not others and not self.playing.now.sounding

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.number == self._streaming:
            self._end_stream()

    def _end_stream(self) -> None:
        if self._streaming:
            self.deck.player.end_stream()
        self._streaming = 0
