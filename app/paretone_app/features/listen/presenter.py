"""The listen presenter: lanes during playback, their arrangement, and takes while they stream."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from paretone.session.events import AudioReady, Event
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Part, Presenter, Services, built
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.state.differences import difference_words
from paretone_app.state.jobs import Job, Outcome
from paretone_app.state.playing import LANES
from paretone_app.state.synthesis import STREAM_SIDES

if TYPE_CHECKING:
    from paretone_app.features.listen.panel import ListenPanel


class ListenPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._services = services
        self._player = services.features.find(PlayerPresenter)
        self._drawn = 0
        self._failures: dict[str, str] = {}
        self._compared: tuple[str, str] | None = None  # Ids of the takes A and B compared last.
        self.listen: ListenPanel | None = None
        self.later: dict[str, Callable[[], QWidget]] = {"listen": self._build_listen}
        self._actions.compare.triggered.connect(lambda: self._workspaces.bring_forward("listen"))
        self._player.compared.connect(self._note_compared)
        self._state.comparison.changed.connect(self._show_comparison)
        self._state.jobs.began.connect(lambda _: self._hold())
        self._results.takes.changed.connect(self._show_notes)

    def step_done(self, action: str) -> bool:
        """Whether A and B were compared, and both were made with the current selection."""
        made = self._state.synthesis
        return self._compared == self._sides and made.baseline_is_current and made.accelerated_is_current

    def step_changed(self, action: str) -> bool:
        return self._compared is not None

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        return ("accelerated", "compare")

    @property
    def _sides(self) -> tuple[str, str] | None:
        take_a, take_b = self._state.comparison.take_a, self._state.comparison.take_b
        return None if take_a is None or take_b is None else (take_a.id, take_b.id)

    def _build_listen(self) -> QWidget:
        from paretone_app.features.listen.panel import ListenPanel

        deck, state, add = self._player.deck, self._state, self._actions["add_lane"]
        self.listen = ListenPanel(deck, state.playing, state.comparison, self._theme.colours, add)
        self.listen.seek_wanted.connect(deck.seek_in_takes)
        self.listen.loop_wanted.connect(deck.loop_in_takes)
        self.listen.arranged.connect(partial(self._state.comparison.change, self._state.undo_stack))
        takes = self._services.features.find(TakesPresenter)
        self.listen.noted.connect(takes.note)
        takes.faults_found.connect(self._show_faults)
        empty_a, empty_b = self.listen.empty
        empty_a.offer(self._actions.baseline, "Make take A")
        empty_b.offer(self._actions.accelerated, "Make take B")
        self._hold()
        self._show_faults()
        self._show_notes()
        self._show_comparison()
        return self.listen

    def shut_down(self) -> None:
        if self.listen is not None:
            self.listen.shut_down(wait=True)

    def _hold(self) -> None:
        """Analyse nothing while a job runs, which may be timing a take."""
        if self.listen is not None:
            self.listen.finder.hold(bool(self._state.jobs.running))

    def _show_faults(self) -> None:
        built(self.listen).findings = self._services.features.find(TakesPresenter).findings
        built(self.listen).show_lanes()

    def _show_notes(self) -> None:
        if self.listen is not None:
            there = {one.id for one in self._state.comparison.lanes if one is not None}
            self.listen.notes = {one.id: one.remark for one in self._results.takes.all if one.id in there}
            self.listen.show_lanes()

    def _show_comparison(self) -> None:
        if self.listen is None:
            return
        compared = self._state.comparison
        self._show_warning()
        self._show_notes()
        shown = ["{}: {} → {}".format(*difference_words(one)) for one in compared.differences()]
        pair = " → ".join(LANES[one] for one in (compared.reference, compared.other))
        self.listen.set_difference(f"{pair}   " + "   ".join(shown) if shown else "")

    def _show_warning(self) -> None:
        """Show cautions about the comparison. After a failed take, the previous one still plays."""
        takes = {"A": self._state.comparison.take_a, "B": self._state.comparison.take_b}
        said = [
            f"The last take {side} failed: {sentence}"
            + (f" {side} still plays the previous take." if takes[side] is not None else "")
            for side, sentence in sorted(self._failures.items())
        ]
        built(self.listen).caution.say(" ".join([*said, self._state.comparison.warning()]).strip())

    def _note_compared(self) -> None:
        self._compared = self._sides
        self.changed.emit()

    def follow(self, event: Event) -> None:
        if not isinstance(event, AudioReady) or self.listen is None:
            return
        if self._drawn != event.job:
            self._drawn = event.job
            job = self._state.jobs.find(event.job)
            side = STREAM_SIDES.get(job.kind) if job is not None else None
            if side is not None:
                self.listen.begin_take(side, event.sample_rate)
        self.listen.add_to_take(event.samples)

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        self._hold()
        side = STREAM_SIDES.get(job.kind)
        if side is None:
            return
        self._failures.pop(side, None)
        if outcome is Outcome.FAILED:
            self._failures[side] = sentence
        if self.listen is not None:
            if outcome is not Outcome.FINISHED and job.number == self._drawn:  # And no other that waited.
                self.listen.end_take()
            self._show_warning()
