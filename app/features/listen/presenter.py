"""The listening presenter: takes are kept, found again, compared as A and B, heard while they are made, and saved as
WAV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMainWindow, QWidget

from app.features.log.panel import Level
from app.features.takes.panel import TakesPanel
from app.features.takes.table import FailedTake
from app.features.takes.wav import write_wav
from app.shell import file_dialogs
from app.shell.actions import Actions
from app.shell.docks import Docks
from app.shell.notices import Notices
from app.shell.theme import Theme
from app.state.app_state import AppState
from app.state.comparison import keeps_timing
from app.state.jobs import Job, Kind, Outcome
from app.state.take_library import OpenedLibrary, replace_damaged
from engine.errors import PlainError
from engine.session.messages import AudioReady, Event
from engine.setting.library import Library, TakeSummary
from engine.setting.take import Take
from engine.techniques import wording

if TYPE_CHECKING:
    from app.audio.player import Player
    from app.features.listen.panel import ListenPanel

_SIDES = {Kind.BASELINE: "A", Kind.ACCELERATED: "B"}
"""Which side the take of a job is for."""


class ListeningPresenter(QObject):
    """Owns Takes and Listen."""

    listened = Signal()
    """What is compared was listened to."""
    takes_changed = Signal()
    """The library has takes more or fewer."""
    heard_at = Signal(str, float)
    """Which side is heard, ``"A"`` or ``"B"``, or a part of it alone, and how many seconds from its beginning."""

    def __init__(
        self,
        window: QMainWindow,
        state: AppState,
        opened: OpenedLibrary,
        actions: Actions,
        docks: Docks,
        notices: Notices,
        theme: Theme,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._state = state
        self._opened = opened
        self._actions = actions
        self._docks = docks
        self._notices = notices
        self._theme = theme
        self._streaming = 0
        self._sounding = False
        """Whether a sound is heard that is neither A nor B."""
        self._name = ""
        """What the sound is called."""
        self._part_of: tuple[str, float, float] | None = None
        """The side that this sound is a part of, where in it the part begins, and how far in its last sample lies, in
        seconds."""
        self._failures: dict[str, str] = {}
        """Why the last take for a side came to nothing, by side."""
        self.compared = False
        """Whether A and B have been listened to."""
        self.listen: ListenPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"listen": self._build_listen}
        self.takes = TakesPanel(opened.library, theme.colours)
        self.takes.a_chosen.connect(state.set_a)
        self.takes.b_chosen.connect(state.set_b)
        self.takes.rerun_wanted.connect(self._rerun)
        self.takes.problem.connect(notices.warn)
        self.takes.changed.connect(self.takes_changed)
        docks.put("takes", self.takes)
        actions.bind(actions.compare, self._compare)
        actions.bind(actions.play, self._play)
        actions.bind(actions.swap, self._swap)
        actions.bind(actions.save_wav, self._ask_where_to_save)
        actions.bind(actions.data_folder, self._open_data_folder)
        actions.set_a.triggered.connect(self.takes.set_a)
        actions.set_b.triggered.connect(self.takes.set_b)
        state.comparison_changed.connect(self._show_comparison)
        state.take_added.connect(self._keep_take)
        state.jobs.ended.connect(self._job_ended)

    @property
    def library(self) -> Library:
        """Where takes are kept."""
        return self._opened.library

    def refresh(self) -> None:
        """As :class:`app.features.presenter.Presenter` says."""
        sides = self._state.take_a, self._state.take_b
        some = any(take is not None for take in sides)
        actions = self._actions
        can_play = some and self.listen is not None and not self.listen.lent
        actions.compare.setEnabled(can_play)
        actions.play.setEnabled(can_play)
        actions.swap.setEnabled(all(take is not None for take in sides))
        actions.save_wav.setEnabled(some)

    def shut_down(self) -> None:
        """Close the player and the library."""
        if self.listen is not None:
            self.listen.close()
        self.library.close()

    # --- Takes ------------------------------------------------------------------------------------------------------
    @Slot(object)
    def _keep_take(self, take: Take) -> None:
        for note in take.notes:
            self._notices.warn(note)
        try:
            self.takes.add(self.library.add(take))
        except PlainError as error:
            self._offer_replacement(str(error), "error")

    def tell_library_problem(self) -> None:
        """Say what is wrong with the library, if anything, and offer what would mend it."""
        if self._opened.problem:
            self._notices.note(self._opened.problem, Level.WARNING)
            self._offer_replacement(self._opened.problem, "warning")

    def _offer_replacement(self, problem: str, level: str) -> None:
        if self._opened.damaged is None:
            self._notices.say(problem, level)
        else:
            self._notices.ask(problem, ("Set it aside and start a new one",), lambda _: self._replace_library(), level)

    def _replace_library(self) -> None:
        self._opened = replace_damaged(self._opened)
        self.takes.set_library(self.library)
        self._notices.note(self._opened.problem)
        self._notices.say(self._opened.problem, "warning" if self._opened.damaged else "info")

    @Slot(object)
    def _rerun(self, take: TakeSummary) -> None:
        self._actions.attempt(lambda: self._state.use_setting(take))
        self._docks.go_to("setup")

    def _swap(self) -> None:
        take_a, take_b = self._state.take_a, self._state.take_b
        self._state.set_a(take_b)
        self._state.set_b(take_a)

    def _open_data_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.library.folder)))

    def _ask_where_to_save(self) -> None:
        file_dialogs.ask_for_folder(
            self._window,
            "Folder for the WAV files",
            lambda folder: self._actions.attempt(lambda: self.save_wavs(folder)),
        )

    def save_wavs(self, folder: Path) -> tuple[Path, ...]:
        """Write A and B into ``folder``. Raises :class:`PlainError` when they cannot be written."""
        written = []
        for name, take in (("a", self._state.take_a), ("b", self._state.take_b)):
            if take is not None:
                path = folder / f"take-{name}-{take.id}.wav"
                write_wav(path, take.samples, take.sample_rate)
                written.append(path)
                self._notices.note(f"Wrote {path}")
        return tuple(written)

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
    def _show_comparison(self) -> None:
        self.takes.show_comparison(self._state.take_a, self._state.take_b)
        self._show_takes_to_hear()
        warning = self._state.comparison_warning()
        if warning:
            self._notices.note(warning, Level.WARNING)

    def _show_takes_to_hear(self) -> None:
        if self.listen is None:
            return
        state = self._state
        self.listen.set_take("A", state.take_a)
        self.listen.set_take("B", state.take_b)
        self.listen.set_aligned(all(one is None or keeps_timing(one.setting) for one in (state.take_a, state.take_b)))
        self._show_warning()
        shown = [f"{wording(one)}: {one.left} → {one.right}" for one in state.differences()]
        self.listen.set_difference("A → B   " + "   ".join(shown) if shown else "")

    def _show_warning(self) -> None:
        """Say what is to be known about the comparison. Where a take failed, an older one is heard."""
        takes = {"A": self._state.take_a, "B": self._state.take_b}
        said = [
            f"The last take {side} failed: {sentence}"
            + (f" What is heard as {side} was made before it." if takes[side] is not None else "")
            for side, sentence in sorted(self._failures.items())
        ]
        self.listen.set_warning(" ".join([*said, self._state.comparison_warning()]).strip())

    def _compare(self) -> None:
        """Play what is compared; while it plays, switch to the other take."""
        if self.listen is None:
            return
        self._docks.bring_forward("listen")
        if self.listen.player.playing:
            self.listen.switch()
        else:
            self.listen.toggle_play()
        self._note_compared()

    def _note_compared(self) -> None:
        self.compared = True
        self.listened.emit()

    def _play(self) -> None:
        if self.listen is not None:
            self.listen.toggle_play()

    @Slot(str, float)
    def hear(self, side: str, seconds: float) -> None:
        """Play side ``"A"`` or ``"B"`` from ``seconds`` on."""
        if self.listen is not None:
            self.listen.hear_from(side, seconds)

    def hear_sound(
        self, samples: np.ndarray, sample_rate: int, part_of: tuple[str, float] | None = None, name: str = ""
    ) -> None:
        """Play a sound (n,) that is neither A nor B, from its beginning. ``part_of``: the side that it is a part of,
        and where in it that begins, in seconds. ``name`` is what :meth:`sounds` knows it by."""
        if self.listen is None or self.listen.lent:
            return
        self._end_stream()
        self._sounding, self._name = True, name
        self._part_of = None if part_of is None else (*part_of, (len(samples) - 1) / sample_rate)
        self.listen.begin_stream(sample_rate, alone=True)
        self.listen.append(samples)
        self.listen.end_stream()

    def sounds(self, name: str) -> bool:
        """Whether the sound called ``name`` is being heard, rather than A, B or another one."""
        return self._sounding and self._name == name and self.listen.player.streaming

    @Slot(float)
    def _tell_position(self, seconds: float) -> None:
        if self._streaming:
            return
        self._sounding = self._sounding and self.listen.player.streaming
        if not self._sounding:
            self.heard_at.emit(self.listen.heard, seconds)
        elif self._part_of is not None:
            side, start, last = self._part_of
            # At its end it is still itself, and not what comes after it in the take.
            self.heard_at.emit(side, start + min(seconds, last))

    @Slot(bool)
    def _heard_something(self, playing: bool) -> None:
        both = self._state.take_a is not None and self._state.take_b is not None
        if playing and both and not self._streaming:
            self._note_compared()

    @Slot(str)
    def _tell_audio_problem(self, sentence: str) -> None:
        if sentence:
            self._notices.note(sentence, Level.WARNING)

    # --- Listening tests --------------------------------------------------------------------------------------------
    def lend(self) -> Player:
        """The player, which is a listening test's until :meth:`take_back`."""
        player = self.listen.lend()
        self.refresh()
        return player

    def take_back(self) -> None:
        """The listening test is over."""
        self.listen.take_back()
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
            self.listen.begin_stream(event.sample_rate)
        self.listen.append(event.samples)

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
            self.takes.add(FailedTake.of(job.command, sentence))
        if self.listen is not None:
            self._show_warning()

    def _end_stream(self) -> None:
        if self._streaming and self.listen is not None:
            self.listen.end_stream()
        self._streaming = 0
