"""The takes presenter: stores takes, chooses A and B, and saves WAV files."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from paretone.checks.faults import Checked
from paretone.checks.speech import seams_of
from paretone.errors import PlainError, told
from paretone.files import write_wav
from paretone.models import catalogue
from paretone.models.base import Voice
from paretone.models.voices import is_own
from paretone.session.commands import JudgeTake, Synthesise
from paretone.session.events import Event, JobFailed, TakeJudged
from paretone.setting.take import Take
from paretone_app.audio.sound import Sound
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Presenter, Services, listed_in
from paretone_app.features.takes.panel import TakesPanel
from paretone_app.features.takes.table import FailedTake, WaitingTake, made_at
from paretone_app.numbers import counted
from paretone_app.shell.entries import Findable
from paretone_app.shell.notices import Level
from paretone_app.shell.only_window import choose_folder
from paretone_app.state.differences import label_of, measured_against, setting_text
from paretone_app.state.editing import Edit
from paretone_app.state.jobs import IdleWork, Job, Jobs, Kind, Outcome, Piece
from paretone_app.state.playing import LANES, Origin, setting_title
from paretone_app.widgets.action import Action


class TakeJudging(QObject):
    """Runs judges on takes at idle times. A new job waits a third of a second at most; judging is repeated later."""

    judged = Signal(str, object, object)
    """A take's id, the judges' figures by name, and its faults."""

    def __init__(
        self, jobs: Jobs, voices: Callable[[], Iterable[Voice]] = tuple, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._voices = voices
        self._work = IdleWork(jobs, self)
        self._work.happened.connect(self._note)

    @property
    def busy(self) -> bool:
        return self._work.busy

    def add(self, take: Take) -> None:
        voice = voice_of(take, self._voices())
        prompt, transcript = ("", "") if voice is None else (voice.audio, voice.transcript)
        about = prompt, "" if take.unfinished else take.text, transcript, seams_of(take)
        self._work.add(
            Piece(take.id, lambda number: JudgeTake(number, take.id, take.samples, take.sample_rate, *about))
        )

    def follow(self, event: Event) -> None:
        self._work.follow(event)

    def shut_down(self) -> None:
        self._work.clear()

    def _note(self, _take: str, event: Event) -> None:
        if isinstance(event, TakeJudged):
            self.judged.emit(event.take, event.figures, event.checked)
        elif isinstance(event, JobFailed):
            # It would fail for other takes, too.
            self._work.clear()


def voice_of(take: Take, voices: Iterable[Voice] = ()) -> Voice | None:
    """Voice of a take; ``None`` if it is no longer the model's or among the user's ``voices``."""
    if is_own(take.voice):
        return next((one for one in voices if one.id == take.voice), None)
    try:
        return catalogue.voice(take.voice, take.setting.model)
    except PlainError:
        return None


_COMPARED, _PAIR = "compared", "compared lanes"
"""Settings keys: ids of the takes in lanes; letters of the reference and of the lane compared with it."""


class TakesPresenter(Presenter):
    faults_found = Signal()
    """:attr:`findings` changed."""
    moved = Signal(object)
    """The data folder changed to this :class:`Path`."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        state = services.state
        actions = services.actions
        self._settings = services.settings
        self._kept = self._results.takes
        self.takes = TakesPanel(self._kept, services.theme.colours, self._make_actions(), state.undo_stack)
        self.takes.pages.offer(services.actions.baseline, "Make take A")
        self._player = services.features.find(PlayerPresenter)
        for one in (self.takes, self._kept):
            one.problem.connect(services.notices.warn)
        self._kept.changed.connect(self._count_gains)
        self._count_gains()
        self.judging = TakeJudging(state.jobs, self.voices, self)
        self.judging.judged.connect(self._keep_judged)
        self.findings: dict[str, Checked] = {}
        """Faults of takes checked in this session."""
        self._asked: set[str] = set()
        """Takes of earlier sessions that are checked again because they are lanes."""
        services.workspaces.put("takes", self.takes)
        none = "Make takes A and B first."
        actions.bind(actions["swap"], self._swap, lambda: "" if len(self._compared) == 2 else none)
        ask = partial(self._ask_for_folder, "Folder for the WAV files", self.save_wavs)
        actions.bind(actions["save_wav"], ask, lambda: "" if self._compared else "Make a take first.")
        actions.bind(
            actions["data_folder"], lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._kept.library.folder)))
        )
        ask = partial(self._ask_for_folder, "Folder for takes and calibrations", self.move_data)
        actions.bind(actions["choose_data_folder"], ask)
        actions.bind(actions["set_a"], lambda: state.comparison.set_a(self.takes.load_chosen()))
        actions.bind(actions["set_b"], lambda: state.comparison.set_b(self.takes.load_chosen()))
        actions.bind(actions["add_lane"], lambda: self.add_lanes([one.id for one in self.takes.selected()]))
        state.comparison.changed.connect(self._show_comparison)
        state.playing.changed.connect(self._show_playing)
        state.synthesis.take_added.connect(self._keep_made)
        state.synthesis.timed_again.connect(partial(self._keep, self._kept.repeat))
        state.making.take_made.connect(self._keep_made)
        state.jobs.changed.connect(self._show_waiting)
        self.takes.cancelled.connect(self._cancel)

    def _make_actions(self) -> dict[str, Action]:
        def add(text: str, do: Callable[[], object], tip: str, keys: str) -> Action:
            action = self._actions.add(text, do, tip)
            action.setShortcut(keys)
            return action

        return {
            "play": add("&Play", self._play, "Play the selected take; again: stop", "Return"),
            "set_a": add("Set &A", self._actions["set_a"].trigger, "Compare with the selected take as A", "A"),
            "set_b": add("Set &B", self._actions["set_b"].trigger, "Compare with the selected take as B", "B"),
            "lane": add("Add lane", self._actions["add_lane"].trigger, "Add the selected takes as lanes", "L"),
            "star": add("S&tar", lambda: self.takes.star(), "Star or unstar the selected takes", "S"),
            "use": add(
                "Use i&n Setup", self._use, "Load this take's settings into Setup, to change and run them again", "R"
            ),
            "save": add("Save &WAV…", lambda: self.takes.ask_where_to_save(), "Write the selected take's audio", "W"),
            "reveal": add("Reveal", lambda: self.takes.reveal(), "Open the folder with the take's audio", "V"),
            "delete": add("&Delete…", lambda: self.takes.delete(), "Delete the selected takes and their audio", "Del"),
        }

    def engine_starts(self) -> None:
        """Report problems of the library and offer a remedy; restore the lanes of the last session."""
        if problem := self._kept.opened.problem:
            self._notices.note(problem, Level.WARNING)
            self._offer_replacement(problem, "warning")
        self._compare_again()

    @property
    def _compared(self) -> dict[str, Take]:
        sides = ("a", self._state.comparison.take_a), ("b", self._state.comparison.take_b)
        return {side: take for side, take in sides if take is not None}

    def findable(self) -> Iterator[Findable]:
        for take in self._kept.all:
            said = f"“{take.text}”, {setting_text(take.setting)}"
            go = partial(self._go_to, take.id)
            yield Findable(label_of(take) or take.text, "Take", made_at(take), said, go, more=take.voice)

    def _go_to(self, take: str) -> None:
        self._workspaces.go_to("takes")
        self.takes.go_to(take)

    def shut_down(self) -> None:
        self.judging.shut_down()
        # Judgements may still arrive from the engine, after the library is closed.
        self.judging.judged.disconnect(self._keep_judged)

    def _count_gains(self) -> None:
        self._state.gains.set_takes(self._kept.measured)

    def _keep_made(self, take: Take) -> None:
        """Store a take, measured against its baseline if that exists and is not A."""
        if take.setting.techniques and take.log_mel_distance is None:
            asked = take.text, take.voice, take.checkpoint, take.setting.baseline
            known = (
                one.id for one in self._kept.finished if (one.text, one.voice, one.checkpoint, one.setting) == asked
            )
            with suppress(PlainError):  # Reported elsewhere.
                take = measured_against(take, next((self._kept.library.load(one) for one in known), None))
        for note in take.notes:
            if note not in self._notices.cautioned:
                self._notices.warn(note)
        try:
            self._kept.add(take)
        except PlainError as error:
            self._offer_replacement(str(error), "error")
            return
        self.judging.add(take)

    def follow(self, event: Event) -> None:
        self.judging.follow(event)

    def voices(self) -> Iterator[Voice]:
        """The user's own, and those that replies of measured servers should have."""
        from paretone.serving.records import heard_voices

        yield from self._state.selection.voices
        yield from heard_voices(self._results.servers_folder)

    def _keep_judged(self, take: str, figures: Mapping[str, float], found: Checked) -> None:
        self._keep(self._kept.measure, take, figures)
        self.findings[take] = found
        self._show_faults()
        self.faults_found.emit()

    def _keep(self, measure: Callable[..., None], *found: object) -> None:
        with told(self._notices.warn):
            measure(*found)

    def _show_waiting(self) -> None:
        jobs = self._state.jobs
        running = {one.number: "is being made" for one in jobs.running}
        waiting = [
            WaitingTake.of(one, one.command, running.get(one.number, "waits"))
            for one in (*jobs.all, *jobs.left)
            if isinstance(one.command, Synthesise) and one.kind is not Kind.REPEAT
        ]
        self.takes.show_waiting(waiting)

    def _cancel(self, numbers: Collection[int]) -> None:
        for job in [one for one in (*self._state.jobs.all, *self._state.jobs.left) if one.number in numbers]:
            self._state.jobs.cancel(job)

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if outcome is Outcome.FAILED and isinstance(job.command, Synthesise) and job.kind is not Kind.REPEAT:
            self.takes.add_failed(FailedTake.of(job.command, sentence))

    def _show_playing(self) -> None:
        now = self._state.playing.now
        self.takes.model.set_playing(now.key if now.sounding else "")
        self._show_faults()

    def _show_faults(self) -> None:
        """Mark the faults of the take in the player; those of lanes of earlier sessions are looked for first."""
        now = self._state.playing.now
        strip = self._player.control.bar.strip
        strip.set_faults(self.findings.get("" if now.start or now.origin is Origin.TEST else now.key, Checked()))
        for one in self._state.comparison.lanes:
            if one is not None and one.metrics.faults and one.id not in {*self.findings, *self._asked}:
                self._asked.add(one.id)
                self.judging.add(one)

    def _show_comparison(self) -> None:
        self.takes.show_comparison(self._state.comparison)
        self._show_faults()
        if warning := self._state.comparison.warning():
            self._notices.note(warning, Level.WARNING)

    def _keep_comparison(self) -> None:
        compared = self._state.comparison
        kept = [take.id if take is not None else "" for take in compared.lanes]
        self._settings.setValue(_COMPARED, json.dumps(kept))
        self._settings.setValue(_PAIR, json.dumps([LANES[compared.reference], LANES[compared.other]]))

    def _compare_again(self) -> None:
        """Restore the lanes of the last session unless deleted."""
        comparison, lanes, gone = self._state.comparison, list[Take | None](), []
        for lane, name in zip(LANES, listed_in(self._settings, _COMPARED), strict=False):
            lanes.append(None)
            try:
                if name in self._kept.library:
                    lanes[-1] = self._kept.library.load(name)
            except PlainError as error:
                gone.append(f"Take {lane} of the last session cannot be shown again: {error}")
        pair = [LANES.index(one) for one in listed_in(self._settings, _PAIR) if one in LANES]
        if any(lanes):
            comparison.arrange(lanes, *pair[:2])
        if gone:
            self._notices.warn(" ".join(gone))
        comparison.changed.connect(self._keep_comparison)
        if self._compared:
            self._keep_comparison()

    def add_lanes(self, ids: Iterable[str]) -> None:
        """Show takes as lanes after those that are there; A and B are filled first. Raises :class:`PlainError`."""
        compared = self._state.comparison
        lanes, there = list(compared.lanes), {one.id for one in compared.lanes if one is not None}
        if not (new := [self._kept.library.load(one) for one in ids if one not in there]):
            raise PlainError("The selected takes are lanes already.")
        if len(there) + len(new) > len(LANES):
            raise PlainError(f"There are at most {len(LANES)} lanes: remove one in Listen first.")
        for take in new:
            at = lanes.index(None) if None in lanes else len(lanes)
            lanes[at : at + 1] = [take]
        what = f"add {counted(len(new), 'lane', 'lanes')}"
        compared.change(self._state.undo_stack, what, lanes, compared.reference, compared.other)
        self._workspaces.bring_forward("listen")

    def note(self, take: str, text: str) -> None:
        """Keep the user's note on a take."""
        before = next((one.remark for one in self._kept.all if one.id == take), "")
        put = partial(self._keep, self._kept.remark, take)
        self._state.undo_stack.push(Edit("write a note", before, text, put))

    def _play(self) -> None:
        """Play a take without making it A or B, or stop it."""
        player, take = self._player, self.takes.load_chosen()
        if player.why_not_hear():
            raise PlainError(player.why_not_hear())
        if player.sounds(take.id):
            player.player.pause()
        else:
            title = setting_title(take.setting, f"Take of {made_at(take)}")
            player.hear_sound(Sound(take.samples, take.sample_rate, title, take.text, take.id))

    def _use(self) -> None:
        if caution := self._state.editing.use_setting(self.takes.chosen):
            self._notices.warn(caution)
        self._workspaces.go_to("setup")

    def _swap(self) -> None:
        take_a, take_b = self._state.comparison.take_a, self._state.comparison.take_b
        self._state.comparison.set_a(take_b)
        self._state.comparison.set_b(take_a)

    def _offer_replacement(self, problem: str, level: str) -> None:
        opened = self._kept.opened
        if opened.damaged is None and opened.temporary:
            choose = self._actions["choose_data_folder"].trigger
            self._notices.ask(problem, ("Choose another folder…",), lambda _: choose(), level)
        elif opened.damaged is None:
            self._notices.say(problem, level, at_risk=True)
        else:
            self._notices.ask(problem, ("Set it aside and start a new one",), lambda _: self._replace_library(), level)

    def _replace_library(self) -> None:
        self._kept.replace_damaged()
        opened = self._kept.opened
        self._notices.note(opened.problem)
        self._notices.say(opened.problem, "warning" if opened.damaged else "info")

    def move_data(self, folder: Path) -> None:
        """Keep takes in ``folder`` from now on, all else from the next start. Raises :class:`PlainError`."""
        self._kept.move(folder / "takes")
        caution = choose_folder(folder)
        self.moved.emit(folder)
        self._notices.banner.clear()  # Messages about the former folder are outdated.
        rest = caution or "Calibrations and the layout of the window are kept there from the next start on."
        self._notices.say(f"Takes are kept in {folder} from now on. {rest}", "info")

    def save_wavs(self, folder: Path) -> tuple[Path, ...]:
        """Write A and B into ``folder``. Raises :class:`PlainError` on failure."""
        written = []
        for side, take in self._compared.items():
            path = folder / f"take-{side}-{take.id}.wav"
            write_wav(path, take.samples, take.sample_rate)
            written.append(path)
            self._notices.note(f"Wrote {path}")
        return tuple(written)
