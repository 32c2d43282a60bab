"""The lab's presenter: finds comparable settings, prepares sounds, pauses the engine during tests, stores trials."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Signal

from paretone.audio.recording import read_recording
from paretone.errors import PlainError
from paretone.listening import trials
from paretone.listening.trials import RecordError, TrialRecord
from paretone.models.voices import shipped_voices, shown_name
from paretone.session.commands import RunStudy
from paretone.setting.library import TakeSummary
from paretone.setting.take import Take
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Part, Presenter, Services, built
from paretone_app.shell.bridge import Background, arrived
from paretone_app.state.availability import require
from paretone_app.state.jobs import Job

if TYPE_CHECKING:  # And on use: no start needs them.
    from paretone.listening import results
    from paretone_app.features.lab.panel import LabChoice, LabPanel
    from paretone_app.listening.planning import ListeningPlan
    from paretone_app.listening.session import ListeningSession
    from paretone_app.listening.stimuli import Condition, PreparedItem


class LabPresenter(Presenter):
    """Owns Lab. During a test, it holds the player, and the engine starts nothing."""

    carried_through = Signal()
    """A test was completed: there are new results."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._player = services.features.find(PlayerPresenter)
        self._takes: tuple[TakeSummary, ...] = ()
        self.conditions: tuple[Condition, ...] = ()
        self._preparing = False
        self._coming: Callable[[], None] | None = None  # Starts the prepared test once background work is paused.
        self._background = Background("lab", self)
        self.lab: LabPanel | None = None
        self.later = {"lab": self._build_lab}
        self._actions.bind(self._actions["listening_test"], lambda: self._workspaces.go_to("lab"))
        self.carried_through.connect(self._results.read_listened)
        self._state.jobs.paused.connect(self._engine_held)

    def refresh(self) -> None:
        if self.lab is not None and self.lab.trial is None:
            self._show_plan()

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        from paretone_app.listening.stimuli import compared

        lab = built(self.lab)
        ended: list[None] = []
        self.carried_through.connect(lambda: ended.append(None))

        def begin() -> None:
            lab.show_setup()
            lab.setup.choose_short_test(4)
            self.begin()

        return (
            Part(
                "press <b>Begin the test</b>.",
                lambda: lab.setup.begin_button,
                lambda: self._state.jobs.held or bool(ended),
                begin,
                lambda: compared(self._takes_a_b)[2] or self._why_not_now(),
                "Begin a short test",
            ),
            Part(
                "set the volume (Return), then play A, B and X with these keys, and answer with 1 for A or 2 for B.",
                lambda: None,
                lambda: bool(ended),
                lab.setFocus,
                help_text="Go to the test",
            ),
        )

    def shut_down(self) -> None:
        if self.lab is not None:
            self.lab.end()
        self._background.shut_down()

    def _build_lab(self) -> LabPanel:
        from paretone_app.features.lab.panel import LabPanel

        add = self._actions.add
        actions = {
            "begin": add("Be&gin the test", self.begin, "The score is hidden until the end"),
            "export": add(
                "E&xport for webMUSHRA…",
                partial(self._ask_for_folder, "Folder for the test, such as webMUSHRA's configs", self.write_test),
                "Save the whole test with its sounds, for listeners elsewhere",
            ),
            "write_results": add(
                "Expor&t as CSV…",
                partial(self._ask_for_folder, "Folder for the results", self.write_results),
                "Save all results in webMUSHRA's format",
            ),
            "abandon": add("A&bandon", self._abandon, "End the test; it is not scored"),
            "stop_waiting": add("&Do not wait", self._do_not_wait, "Do not begin the test"),
            "reconnect": self._player.control.bar.can["reconnect"],
        }
        self.lab = LabPanel(self._theme.colours, actions)
        self.lab.setup.choice_changed.connect(self._show_plan)
        self.lab.answered.connect(self._keep)
        self.lab.when_seen(self._look_again)
        self.lab.shown.connect(self._read_results)
        self._results.watch(self.lab)
        for signal in (self._results.takes.changed, self._results.points_changed):
            signal.connect(partial(self.lab.when_seen, self._look_again))
        self._player.problem_changed.connect(lambda _: self.refresh())
        self._show_listeners()
        return self.lab

    def propose(self, method: str, takes: Collection[str]) -> None:
        """Show the lab with a test of the settings of these takes (ids) filled in."""
        from paretone_app.listening.stimuli import setting_key

        self._workspaces.go_to("lab")
        self._look_again()
        lab = built(self.lab)
        if lab.trial is None and lab.volume is None:
            lab.show_setup()
            lab.setup.choose(method, {setting_key(one.setting) for one in self._takes if one.id in takes})

    def _look_again(self) -> None:
        """Update the settings with takes if takes were added or removed."""
        from paretone_app.listening.stimuli import conditions

        takes = self._results.all_takes
        if [one.id for one in takes] == [one.id for one in self._takes]:
            return
        self._takes = takes
        found = conditions(one.setting for one in takes)
        self.conditions = tuple(sorted(found, key=lambda one: (one.accelerated, one.title)))
        built(self.lab).setup.show_conditions(self.conditions)
        self.refresh()

    @property
    def _takes_a_b(self) -> list[Take]:
        comparison = self._state.comparison
        return [one for one in (comparison.take_a, comparison.take_b) if one is not None]

    def plan_of(self, choice: LabChoice) -> tuple[ListeningPlan, str]:
        """The plan, and why it makes no test, as a sentence, or ``""``."""
        from paretone_app.features.lab.panel import COMPARED
        from paretone_app.listening.planning import planned
        from paretone_app.listening.stimuli import compared, items

        if choice.source == COMPARED:
            found, shared, problem = compared(self._takes_a_b)
        else:
            found = tuple(one for one in self.conditions if one.key in choice.ticked)
            shared, problem = items(self._takes, found) if found else (), ""
        plan = planned(choice.method, found, shared, choice.length, choice.listener, choice.practice)
        return plan, problem or plan.why_not()

    def _show_plan(self) -> None:
        from paretone_app.features.lab.panel import COMPARED
        from paretone_app.listening import webmushra

        setup = built(self.lab).setup
        choice = setup.choice
        plan, cannot = self.plan_of(choice)
        cannot_export = cannot or webmushra.why_not_exported(choice.method)
        warning = self._state.comparison.warning(0, 1) if choice.source == COMPARED and not cannot else ""
        setup.show_plan(plan, cannot or self._why_not_now(), cannot_export, warning)

    def _why_not_now(self) -> str:
        if self._preparing or self._coming is not None:
            return "Preparing the sounds."
        if any(isinstance(one.command, RunStudy) and one.command.ray for one in self._state.jobs.running):
            return "A study is running on a cluster, which cannot be paused for a blind test; pause the study first."
        return self._player.player.problem

    # --- A test -------------------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Prepare the sounds, then start. Raises :class:`PlainError` if not possible."""
        plan, problem = self.plan_of(built(self.lab).setup.choice)
        require(problem or self._why_not_now())
        self._prepare(plan, self._player.player.rate, lambda made: self._start(plan, made))

    def _prepare(self, plan: ListeningPlan, rate: int, then: Callable[[tuple[PreparedItem, ...]], None]) -> None:
        """Prepare the sounds of ``plan`` in the background, then call ``then`` with them here."""
        self._preparing = True
        built(self.lab).show_waiting(f"Matching the loudness of {len(plan.used)} sentences…")
        load = self._loader()

        def work() -> tuple[PreparedItem, ...]:
            from paretone_app.listening.stimuli import levelled, prepared

            return levelled([prepared(one, plan.conditions, plan.method, rate, load) for one in plan.used])

        def done(made: tuple[PreparedItem, ...] | BaseException) -> None:
            self._preparing = False
            built(self.lab).show_setup()
            self.refresh()
            if arrived(made, lambda problem: self._notices.say(problem, "error")):
                self._actions.attempt(partial(then, made))

        self._background.run(work, done)

    def _loader(self) -> Callable[[str], tuple[np.ndarray, int]]:
        """A function for takes' sounds by id, in any thread; A and B need not be in the library. Recordings of voices
        are named ``voice:`` and the voice's id."""
        voices = {one.id: one.audio for one in (*shipped_voices(), *self._state.selection.voices)}
        known, load_kept = {one.id: one for one in self._takes_a_b}, self._results.load_audio()

        def load(take: str) -> tuple[np.ndarray, int]:
            kind, _, voice = take.partition(":")
            if kind == trials.VOICE:
                if voice not in voices:
                    raise RecordError(
                        f"The recording of {shown_name(voice)} is not at hand, so that nothing can be compared with "
                        "it; add the voice in Setup, or rate naturalness."
                    )
                recording = read_recording(voices[voice])
                return recording.samples, recording.sample_rate
            if take in known:
                return known[take].samples, known[take].sample_rate
            return load_kept(take)

        return load

    def _start(self, plan: ListeningPlan, made: tuple[PreparedItem, ...]) -> None:
        require(self._why_not_now())
        session = plan.session(made)
        self._coming = lambda: self._set_volume(session)
        built(self.lab).show_waiting(
            "Background work is paused during a test and resumes after it; only the current take is finished first…",
            can_cancel=True,
        )
        self._state.jobs.hold()

    def _engine_held(self) -> None:
        """Continue with the test that waited for the pause."""
        coming, self._coming = self._coming, None
        if coming is not None:
            coming()

    def _do_not_wait(self) -> None:
        self._coming = None
        self._state.jobs.release()
        built(self.lab).show_setup()

    def _set_volume(self, session: ListeningSession) -> None:
        from paretone_app.listening.stimuli import SILENT_LUFS

        # Focus on the test, with space for the sliders.
        self._workspaces.go_to("lab")
        player = self._player.lend()
        target = next((one.target for one in session.items if np.isfinite(one.target)), SILENT_LUFS)
        built(self.lab).set_volume(target, player, lambda: built(self.lab).begin(session, player))
        self.changed.emit()

    def _keep(self, trial: TrialRecord) -> None:
        try:
            self._results.keep_trial(trial)
        except PlainError as error:
            # Unrecorded trials do not count, so end the test.
            self._end()
            self._notices.say(f"{error} The test ended and is not scored.", "error")
            built(self.lab).show_setup()
            return
        page = built(self.lab).trial
        if page is not None and page.session.finished:
            self._end()
            self._show_listeners()
            built(self.lab).setup.choose_listener(trial.listener)
            built(self.lab).show_setup()
            self._read_results(trial)
            self.carried_through.emit()

    def _abandon(self) -> None:
        self._end()
        self._notices.say("Listening test abandoned. Its trials are kept but not scored.", "info")
        built(self.lab).show_setup()

    def _end(self) -> None:
        built(self.lab).end()
        self._player.take_back()
        self._state.jobs.release()
        self.changed.emit()

    def job_began(self, job: Job) -> None:
        if self._state.jobs.held:
            self._notices.say(f"{job.kind.value}: starts after the listening test.", "info")

    # --- Results -----------------------------------------------------------------------------------------------------
    def _show_listeners(self) -> None:
        with suppress(PlainError):
            built(self.lab).setup.show_listeners(self._results.trials.listeners)

    def _read_results(self, last: TrialRecord | None = None) -> None:
        """Show all results next to the setup, first the comparison with ``last``."""

        def work() -> tuple[list[tuple[str, results.Result]], Sequence[str]]:
            from paretone.listening import results

            records = self._results.trials
            found = results.comparisons(records.trials)
            found = sorted(found, key=lambda own: max(one.created for one in own), reverse=True)
            if last is not None:
                found.sort(key=lambda own: all(one.session != last.session for one in own))
            return [(own[0].method, results.result(own)) for own in found], records.problems

        def done(made: tuple[list[tuple[str, results.Result]], Sequence[str]] | BaseException) -> None:
            if arrived(made, lambda problem: page.show_results((), (problem,))):
                page.show_results(*made)

        page = built(self.lab).results
        self._background.run(work, done)

    # --- Files -------------------------------------------------------------------------------------------------------
    def write_results(self, folder: Path) -> tuple[Path, ...]:
        """Write all results in webMUSHRA's format into ``folder``. Raises :class:`PlainError` on failure."""
        from paretone_app.listening import webmushra

        written = webmushra.write_tables(self._results.trials.trials, folder)
        self._notices.say(f"Wrote {', '.join(map(str, written))}", "info")
        return written

    def write_test(self, folder: Path) -> None:
        """Write the test for webMUSHRA into ``folder``, once its sounds are ready. Raises :class:`PlainError`."""
        from paretone_app.listening import webmushra

        plan, problem = self.plan_of(built(self.lab).setup.choice)
        require(problem)
        name = f"paretone-{plan.method}-{trials.new_name()}"

        def write(made: tuple[PreparedItem, ...]) -> None:
            written = webmushra.write_bundle(name, plan.method, made, plan.length, folder, plan.practice)
            self._notices.say(
                f"Wrote {len(written)} files into {folder / name}. Put that folder into webMUSHRA's configs; "
                f"open webMUSHRA with ?config={name}/{name}.yaml.",
                "info",
            )

        self._prepare(plan, webmushra.RATE, write)
