"""The listen presenter: A and B are heard and seen, and takes are heard while they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from app.features.presenter import Presenter, Services, built
from app.shell.notices import Level
from app.state.differences import difference_words, keeps_timing
from app.state.jobs import Job, Kind, Outcome
from engine.session.events import AudioReady, Event

if TYPE_CHECKING:
    from app.audio.player import Player
    from app.features.listen.panel import ListenPanel

_SIDES = {Kind.BASELINE: "A", Kind.ACCELERATED: "B"}
"""Which side the take of a job is for."""


class ListenPresenter(Presenter):
    """Owns Listen and the player."""

    heard_at = Signal(str, float)
    """Which side is heard, ``"A"`` or ``"B"``, or a part of it alone, and how many seconds from its beginning."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._streaming = 0
        self._sounding = False
        """Whether a sound is heard that is neither A nor B."""
        self._name = ""
        """Name of the sound."""
        self._part_of: tuple[str, float, float] | None = None
        """The side that this sound is a part of, where in it the part begins, and how far in its last sample lies, in
        seconds."""
        self._failures: dict[str, str] = {}
        """Why the last take of a side failed, by side."""
        self._compared: tuple[str, str] | None = None
        """Ids of the takes A and B that were listened to last."""
        self._waited_before = (0, 0.0)
        """What :attr:`_waited` was when the last stream began."""
        self.listen: ListenPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"listen": self._build_listen}
        self._actions.bind(self._actions.compare, self._compare)
        self._actions.bind(self._actions.play, self._play)
        self._state.comparison.changed.connect(self._show_takes_to_hear)
        self._state.jobs.ended.connect(self._job_ended)

    def step_done(self, action: str) -> bool:
        """The baseline that is selected was compared with the take of the techniques that are."""
        made = self._state.synthesis
        return self._compared == self._sides and made.baseline_is_current and made.accelerated_is_current

    def step_changed(self, action: str) -> bool:
        """Other takes were compared."""
        return self._compared is not None

    @property
    def _sides(self) -> tuple[str, str] | None:
        """Ids of A and B."""
        take_a, take_b = self._state.comparison.take_a, self._state.comparison.take_b
        return None if take_a is None or take_b is None else (take_a.id, take_b.id)

    def refresh(self) -> None:
        sides = self._state.comparison.take_a, self._state.comparison.take_b
        some = any(take is not None for take in sides)
        actions = self._actions
        can_play = some and self.listen is not None and not self.listen.deck.lent
        actions.compare.setEnabled(can_play)
        actions.play.setEnabled(can_play)

    def shut_down(self) -> None:
        """Close the player."""
        if self.listen is not None:
            self.listen.close()

    # --- Comparing --------------------------------------------------------------------------------------------------
    def _build_listen(self) -> QWidget:
        from app.audio.player import Player
        from app.features.listen.panel import ListenPanel

        self.listen = ListenPanel(Player(), self._theme.colours)
        self.listen.playing_changed.connect(self._heard_something)
        self.listen.problem_changed.connect(self._tell_audio_problem)
        self.listen.position_changed.connect(self._tell_position)
        self.listen.connect_device()
        self._show_takes_to_hear()
        return self.listen

    @Slot()
    def _show_takes_to_hear(self) -> None:
        if self.listen is None:
            return
        compared = self._state.comparison
        takes = [one for one in (compared.take_a, compared.take_b) if one is not None]
        self.listen.deck.set_take("A", compared.take_a)
        self.listen.deck.set_take("B", compared.take_b)
        self.listen.deck.set_aligned(all(keeps_timing(one.setting) for one in takes))
        self._show_warning()
        shown = ["{}: {} → {}".format(*difference_words(one)) for one in compared.differences()]
        self.listen.set_difference("A → B   " + "   ".join(shown) if shown else "")

    def _show_warning(self) -> None:
        """Say what is to be known about the comparison. Where a take failed, an older one is heard."""
        takes = {"A": self._state.comparison.take_a, "B": self._state.comparison.take_b}
        said = [
            f"The last take {side} failed: {sentence}"
            + (f" {side} still plays the previous take." if takes[side] is not None else "")
            for side, sentence in sorted(self._failures.items())
        ]
        built(self.listen).set_warning(" ".join([*said, self._state.comparison.warning()]).strip())

    def _compare(self) -> None:
        """Play what is compared; while it plays, switch to the other take."""
        if self.listen is None:
            return
        self._docks.bring_forward("listen")
        if self.listen.player.playing:
            self.listen.deck.switch()
        else:
            self.listen.deck.toggle_play()
        self._note_compared()

    def _note_compared(self) -> None:
        self._compared = self._sides
        self.changed.emit()

    def _play(self) -> None:
        if self.listen is not None:
            self.listen.deck.toggle_play()

    @Slot(str, float)
    def hear(self, side: str, seconds: float) -> None:
        """Play side ``"A"`` or ``"B"`` from ``seconds`` on."""
        if self.listen is not None:
            self.listen.deck.hear_from(side, seconds)

    def hear_sound(
        self, samples: np.ndarray, sample_rate: int, part_of: tuple[str, float] | None = None, name: str = ""
    ) -> None:
        """Play a sound (n,) that is neither A nor B, from its beginning. ``part_of``: the side that it is a part of,
        and where in it that begins, in seconds. ``name`` is what :meth:`sounds` knows it by."""
        if self.listen is None or self.listen.deck.lent:
            return
        self._end_stream()
        self._sounding, self._name = True, name
        self._part_of = None if part_of is None else (*part_of, (len(samples) - 1) / sample_rate)
        self.listen.deck.begin_stream(sample_rate, alone=True)
        self.listen.deck.append(samples)
        self.listen.deck.end_stream()

    def sounds(self, name: str) -> bool:
        """Whether the sound called ``name`` is being heard, rather than A, B or another one."""
        return self._sounding and self._name == name and built(self.listen).player.streaming

    @Slot(float)
    def _tell_position(self, seconds: float) -> None:
        if self._streaming:
            return
        self._sounding = self._sounding and built(self.listen).player.streaming
        if not self._sounding:
            self.heard_at.emit(built(self.listen).deck.heard, seconds)
        elif self._part_of is not None:
            side, start, last = self._part_of
            # At its end it is still itself, and not what comes after it in the take.
            self.heard_at.emit(side, start + min(seconds, last))

    @Slot(bool)
    def _heard_something(self, playing: bool) -> None:
        both = self._state.comparison.take_a is not None and self._state.comparison.take_b is not None
        if playing and both and not self._streaming:
            self._note_compared()

    @Slot(str)
    def _tell_audio_problem(self, sentence: str) -> None:
        if sentence:
            self._notices.note(sentence, Level.WARNING)

    @property
    def waits_heard(self) -> tuple[int, float]:
        """How often playback of the last synthesis waited for more audio, and for how many seconds in all."""
        times, seconds = self._waited
        before = self._waited_before
        return times - before[0], seconds - before[1]

    @property
    def _waited(self) -> tuple[int, float]:
        """The same since the window was opened."""
        return (0, 0.0) if self.listen is None else (self.listen.player.starvations, self.listen.player.starved_seconds)

    # --- Listening tests --------------------------------------------------------------------------------------------
    def lend(self) -> Player:
        """The player, which is a listening test's until :meth:`take_back`."""
        player = built(self.listen).deck.lend()
        self.refresh()
        return player

    def take_back(self) -> None:
        """The listening test is over."""
        built(self.listen).deck.take_back()
        self.refresh()

    # --- While a take is made ---------------------------------------------------------------------------------------
    def follow(self, event: Event) -> None:
        """Play a piece of a synthesis that still runs."""
        if not isinstance(event, AudioReady) or self.listen is None:
            return
        if self._streaming != event.job:
            self._end_stream()
            self._sounding = False
            self._streaming = event.job
            self._waited_before = self._waited
            self.listen.deck.begin_stream(event.sample_rate)
            job = self._state.jobs.find(event.job)
            side = _SIDES.get(job.kind) if job is not None else None
            if side is not None:
                self.listen.begin_take(side, event.sample_rate)
        self.listen.deck.append(event.samples)
        self.listen.add_to_take(event.samples)

    @Slot(object, object, str)
    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job.number == self._streaming:
            self._end_stream()
        side = _SIDES.get(job.kind)
        if side is None:
            return
        self._failures.pop(side, None)
        if outcome is Outcome.FAILED:
            self._failures[side] = sentence
        if self.listen is not None:
            self.listen.end_take(outcome is Outcome.FINISHED)
            self._show_warning()

    def _end_stream(self) -> None:
        if self._streaming and self.listen is not None:
            self.listen.deck.end_stream()
        self._streaming = 0
