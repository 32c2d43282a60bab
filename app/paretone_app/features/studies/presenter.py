"""The studies presenter: runs, searches and reports studies, and uses their settings. Their code is imported on use."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from paretone import files
from paretone.errors import PlainError, StudyError
from paretone.extras import SEARCH, why_no_cluster
from paretone.reading import read_text
from paretone.session.commands import RunStudy, VerifyStudy
from paretone.session.events import Event, Progress, StudyBegun, StudyEnded, StudyTakeDone, StudyVerified
from paretone_app.features.presenter import Presenter, Services, built, listed_in
from paretone_app.features.setup.choices import CHECKPOINT_FOLDER
from paretone_app.features.setup.presenter import CHOOSE_FOLDER
from paretone_app.features.studies import MOST_RECENT
from paretone_app.numbers import counted
from paretone_app.results.reader import Results
from paretone_app.shell.bridge import arrived
from paretone_app.shell.entries import Findable
from paretone_app.state.availability import require
from paretone_app.state.differences import other_weights
from paretone_app.state.jobs import Job, Kind, Outcome
from paretone_app.widgets.action import Action

if TYPE_CHECKING:
    from paretone.setting.take import Take
    from paretone.studies.study import Study
    from paretone_app.features.studies.forms import Within
    from paretone_app.features.studies.maker import StudyMaker
    from paretone_app.features.studies.panel import StudiesPanel
    from paretone_app.results.study import OpenStudy


_OPEN, _RECENT, _CHOSEN = "studies/open", "studies/recent", "studies/chosen"
"""Settings keys; written at once, to survive a crash."""


class StudiesMemory:
    """Recent and open studies in the settings."""

    def __init__(self, settings: QSettings) -> None:
        self._settings = settings

    @property
    def recent(self) -> list[str]:
        """Recently opened files and folders, the latest first."""
        return listed_in(self._settings, _RECENT)

    def remember(self, place: Path) -> None:
        """Put ``place`` first among the recent ones."""
        recent = [str(place), *(one for one in self.recent if one != str(place))]
        self._settings.setValue(_RECENT, json.dumps(recent[:MOST_RECENT]))

    def save(self, folders: Iterable[Path], chosen: Path | None) -> None:
        self._settings.setValue(_OPEN, json.dumps([str(one) for one in folders]))
        self._settings.setValue(_CHOSEN, str(chosen or ""))
        self._settings.sync()

    def places(self) -> Iterator[Path]:
        """Places of the last session's open studies, the shown one first: folders, or files never run."""
        from paretone.studies.study import results_folder
        from paretone_app.results.study import results_at

        chosen = str(self._settings.value(_CHOSEN, ""))
        files = {str(results_folder(one)): Path(one) for one in self.recent}
        for place in sorted(listed_in(self._settings, _OPEN), key=lambda one: one != chosen):
            folder, file = Path(place), files.get(place)
            if results_at(folder) is not None:
                yield folder
            elif file is not None and file.exists():
                yield file


class OpenedStudies(QObject):
    changed = Signal()
    """The open or chosen studies changed, or one was read again."""
    brought_forward = Signal(object)
    """The user opened this :class:`OpenStudy`."""

    def __init__(self, results: Results, settings: QSettings, parent: QObject) -> None:
        super().__init__(parent)
        self._results, self.memory = results, StudiesMemory(settings)
        self.chosen: Path | None = None
        """Folder of the shown study."""
        results.study_changed.connect(self._follow)

    @property
    def summary(self) -> OpenStudy | None:
        return self._results.studies.get(self.chosen) if self.chosen is not None else None

    def _save(self) -> None:
        self.memory.save(self._results.studies, self.chosen)

    def open(self, place: Path, in_front: bool = True, then: Callable[[OpenStudy], object] = lambda _: None) -> None:
        """Open the study of a file or results folder, show it if ``in_front``, then call ``then`` with it."""

        def opened(study: OpenStudy) -> None:
            self.memory.remember(place)
            if in_front:
                self.chosen = study.folder
            self._save()
            self.changed.emit()
            if in_front:
                self.brought_forward.emit(study)
            then(study)

        place = Path(place).expanduser().resolve()
        self._results.open(place, opened)

    def choose(self, folder: Path | None) -> None:
        """Show this open study, and read it again."""
        if folder is not None and folder in self._results.studies:
            self.chosen = folder
            self._save()
            self.changed.emit()
            self._results.read_study(folder)

    def _follow(self, folder: Path) -> None:
        """A study was opened, read again, or closed."""
        studies = self._results.studies
        if folder not in studies:
            if self.chosen == folder:
                self.chosen = next(reversed(studies), None)
            self._save()
        elif self.chosen is None:
            self.chosen = folder
        self.changed.emit()


class StudiesPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._studies, self._features = services.folder / "studies", services.features
        self.opened = OpenedStudies(self._results, services.settings, self)
        self.opened.changed.connect(self._show)
        self.opened.brought_forward.connect(self._go_to)
        self._running: tuple[Job, Path] | None = None
        self._ended: StudyEnded | None = None
        self._soon = QTimer(self, singleShot=True, interval=1000)
        self._soon.timeout.connect(self._touch_running)
        self.maker: StudyMaker | None = None
        self.studies: StudiesPanel | None = None
        self.later = {"studies": self._build_studies}
        self._bind()

    def refresh(self) -> None:
        for action in (*self._can.values(), self._verify):
            action.refresh()
        if self.studies is not None:
            self.studies.set_cluster(why_no_cluster())

    def _bind(self) -> None:
        actions, add = self._actions, self._actions.add
        self._can: dict[str, Action] = {}
        ask_for_file = partial(self._ask_for_file, "Open a study", "Study (*.toml *.json)", self.open)
        ask_for_folder = partial(self._ask_for_folder, "Open the results of a study", self.open)
        for name, declared, do, why_not in (
            ("new", "new_study", self.begin_new, str),
            ("open", "open_study", ask_for_file, str),
            ("folder", "open_study_folder", ask_for_folder, str),
            ("example", "open_example", self.open_example, str),
            ("run", "run_study", self._run, self.why_not_run),
            ("pause", "pause_study", self.pause, lambda: "" if self._running else "No study is running."),
            ("use", "use_study_setting", lambda: self.use(built(self.studies).table.current), self.why_not_use),
            ("report", "report_study", self.report, self._why_no_report),
            ("close", "close_study", self.close, self._why_not_close),
        ):
            action = self._can[name] = actions[declared]
            actions.bind(action, do, lambda: "" if self.studies is not None else "Studies is not there yet.")
            action.explain(why_not)
        self._verify = actions["verify_study"]
        actions.bind(self._verify, self.verify, self._why_no_report)
        place = "Say where the model's folder is now, in the study's file"
        export = "Load this setting into Setup and export it as a profile"
        self._can |= {
            "aside": add("Set &aside…", self.set_aside, "Move the damaged results away and start over"),
            "choose_folder": add("Choose folder…", self.ask_for_model_folder, place),
            "export": add(
                "E&xport profile…", lambda: self.export(built(self.studies).table.current), export, self.why_not_use
            ),
            "reveal": add("Show fi&les", self._reveal, "Open the folder with the study's results", self._why_none),
        }

    def findable(self) -> Iterator[Findable]:
        for place in map(Path, self.opened.memory.recent):
            yield Findable(place.stem, "Study", place.parent.name, f"Open {place}.", partial(self.open, place))

    def shut_down(self) -> None:
        self._soon.stop()

    @property
    def summary(self) -> OpenStudy | None:
        seen = self.opened.summary
        if seen is not None and seen.lost_folder and self._state.machine.host:
            return replace(seen, lost_folder="")  # Only the host knows its folders.
        return seen

    def why_not_run(self) -> str:
        seen = self.summary
        if seen is None:
            return self._why_none()
        if seen.folder_problem:
            return seen.folder_problem
        if seen.study is None and (seen.file.exists() or seen.results is None):
            return seen.file_problem
        problems = []
        if seen.study is not None:
            needed = (*((SEARCH,) if seen.study.search is not None else ()), *seen.study.judges)
            problems = [self._state.machine.problem_of(name) for name in needed]
        queued = any(self._folder_of(one) == seen.folder for one in self._state.jobs.all)
        return next(filter(None, problems), "This study runs, or waits in the queue." if queued else "")

    @staticmethod
    def _folder_of(job: Job) -> Path | None:
        return Path(job.command.folder) if isinstance(job.command, RunStudy) else None

    def why_not_use(self) -> str:
        seen = self.summary
        if seen is None:
            return self._why_none()
        here = not seen.model or seen.model == self._state.selection.model_id
        return "" if here else f"The study is for {seen.model}; load that model first (menu Model)."

    def _why_none(self) -> str:
        return "" if self.summary is not None else "Open or create a study first."

    @property
    def _shown(self) -> OpenStudy:
        """The shown study. Raises :class:`StudyError` if there is none."""
        if self.summary is None:
            raise StudyError(self._why_none())
        return self.summary

    def _why_no_report(self) -> str:
        return self._why_none() or ("" if self._shown.made else "No takes yet; run the study first.")

    def _why_not_close(self) -> str:
        here = self._running is not None and self._running[1] == self.opened.chosen
        return self._why_none() or ("The study is running; wait for it to finish, or cancel it." if here else "")

    # --- Opening -----------------------------------------------------------------------------------------------------
    def open(self, place: Path) -> None:
        """Open and show the study with the file ``place`` or the results folder ``place``."""
        self.opened.open(place)

    def open_example(self) -> None:
        """Show a copy of the example study. Raises :class:`PlainError`."""
        from paretone.studies.example import copy_for_user

        self.open(copy_for_user(self._studies))

    def read_example(self, done: Callable[[tuple[Path, Take, Take] | BaseException], object]) -> None:
        """Read two takes of the example in the background; see :func:`example_session`."""

        def read() -> tuple[Path, Take, Take]:
            from paretone_app.results.study import example_session

            return example_session(self._studies)

        self._results.run(read, done)

    def _go_to(self, found: OpenStudy) -> None:
        self._workspaces.go_to("studies")
        if found.damaged:
            self._notices.ask(found.folder_problem, ("Set it aside",), lambda _: self.set_aside())
        elif found.folder_problem:
            self._notices.warn(found.folder_problem)

    def close(self) -> None:
        require(self._why_not_close())
        self._results.close(self._shown.folder)

    # --- Running -----------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        self.run(*built(self.studies).cluster)

    def run(self, ray: str = "", workers: int = 0) -> None:
        """Run the rest of the shown study, on the Ray cluster at ``ray`` if given. Raises :class:`PlainError`."""
        require(self.why_not_run())
        seen = self._shown
        # The folder may be back, on a disk for example. On a cluster, the workers' folder counts.
        if seen.lost_folder and not os.path.exists(seen.lost_folder) and not ray:
            from paretone_app.features.studies.panel import lost_words

            self._notices.ask(lost_words(seen), (CHOOSE_FOLDER,), lambda _: self.ask_for_model_folder())
            return
        if not seen.file.exists():
            self._write_again(seen)
        folder, file = seen.folder, seen.file
        self._state.jobs.replace_left(lambda job: self._folder_of(job) == folder)
        self._state.jobs.start(Kind.STUDY, lambda job: RunStudy(job, str(file), str(folder), ray, workers or None))
        self.refresh()

    def job_began(self, job: Job) -> None:
        folder = self._folder_of(job)
        if folder is not None:
            self._ended, self._running = None, (job, folder)
            if self.studies is not None:
                self.studies.begin(folder)

    def _write_again(self, seen: OpenStudy) -> None:
        """Restore the study's missing file from the copy in the results."""
        with files.explained(StudyError, f"The study file is gone, and {seen.file} could not be restored"):
            files.write_through(seen.file, seen.definition.encode())
        self._notices.note(f"{seen.file} was gone; restored it from the study's copy")

    def ask_for_model_folder(self) -> None:
        self._ask_for_folder(CHECKPOINT_FOLDER, self.set_model_folder, True)

    def set_model_folder(self, folder: Path) -> None:
        """Set the checkpoint's folder in the shown study's file. Takes belong to weights, not folders: other weights
        are refused at the run. Raises :class:`PlainError`."""
        from paretone.studies.definition import with_folder

        require(self._why_not_close())
        seen = self._shown
        if not seen.file.exists():
            self._write_again(seen)
        try:
            text = read_text(seen.file, "utf-8-sig")
            files.write_through(seen.file, with_folder(text, seen.file.name, str(folder.absolute())).encode())
        except (OSError, ValueError) as error:
            reason = files.reason(error) if isinstance(error, OSError) else str(error)
            raise StudyError(f"The folder could not be written into {seen.file}: {reason}.") from error
        self._notices.note(f"{seen.file}: the model is in {folder}, no longer in {seen.lost_folder or 'its folder'}")
        self._results.read_study(seen.folder)

    def pause(self) -> None:
        if self._running is not None:
            self._state.jobs.pause(self._running[0])
            built(self.studies).set_pausing(True)

    def follow(self, event: Event) -> None:
        """Follow the running study, and tell what was verified; see :mod:`paretone.session.events`."""
        if isinstance(event, StudyVerified):
            # What does not agree is shown; the log has every check.
            name = Path(event.folder).name
            for one in event.checks:
                self._notices.note(f"{name}, {one.title.lower()}: {one.detail}")
            wrong = [f"{one.title}: {one.detail}" for one in event.checks if one.agrees is False]
            open_ones = [f"{one.title}: {one.detail}" for one in event.checks if one.agrees is None]
            if wrong:
                self._notices.say(f"The results in {name} do not agree. {' '.join(wrong)}", "error")
            else:
                rest = f" Not checked: {' '.join(open_ones)}" if open_ones else ""
                self._notices.say(f"The results in {name} agree; the log lists what was checked.{rest}", "info")
        if self._running is None or event.job != self._running[0].number:
            return
        if isinstance(event, StudyBegun):
            self._touch_running()
        elif isinstance(event, StudyTakeDone) and not self._soon.isActive():
            self._soon.start()
        elif isinstance(event, StudyEnded):
            self._ended = event

    def show_progress(self, event: Progress) -> None:
        if self._running is not None and event.job == self._running[0].number and self.studies is not None:
            self.studies.show_progress(event)

    def _touch_running(self) -> None:
        if self._running is not None:
            self._results.read_study(self._running[1])

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if self._running is None or job != self._running[0]:
            return
        folder, said = self._running[1], sentence
        self._running = None
        self._soon.stop()
        if outcome is Outcome.CANCELLED:
            said = "Cancelled. Finished takes are kept; Resume continues."
        elif outcome in (Outcome.FINISHED, Outcome.PAUSED) and self._ended is not None:
            made = f"{counted(self._ended.made, 'take', 'takes')} made"
            # Without new takes, the panel says how many there are already.
            finished = f"Finished: {made}." if self._ended.made else ""
            how = f"Paused, {made}. Resume continues." if self._ended.paused else finished
            said = " ".join(filter(None, [how, *self._ended.log, *self._ended.found]))
        built(self.studies).end(said, failed=outcome is Outcome.FAILED)
        self._results.read_study(folder)

    # --- A new study -------------------------------------------------------------------------------------------------
    def begin_new(self) -> StudyMaker:
        from paretone_app.features.studies.forms import offered_kinds
        from paretone_app.features.studies.maker import StudyMaker

        selection = self._state.selection
        kinds = offered_kinds(selection.info if selection.ready else None)
        self.maker = maker = StudyMaker(selection, self._state.machine, self._studies, kinds, self._window)
        maker.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        maker.follow(self._state.installing)
        maker.definition_changed.connect(self._check)
        maker.submitted.connect(self._write_new)
        maker.destroyed.connect(self._maker_gone)
        maker.open()
        maker.check()
        return maker

    def begin_within(self, within: Within) -> None:
        maker = self.begin_new()
        maker.ask_within(within)
        maker.check()

    def _maker_gone(self) -> None:
        self.maker = None

    def _check(self, given: dict) -> None:
        from paretone.studies import definition
        from paretone.studies.results import estimated_seconds
        from paretone_app.features.studies.panel import plan_words

        maker = built(self.maker)
        pace, root = self._results.pace(), Path(maker.path.text()).parent

        def checked() -> tuple[Study, float | None]:
            planned = definition.parse(given, "This study", root)
            return planned, estimated_seconds(planned, pace(planned.model))

        def shown(found: tuple[Study, float | None] | BaseException) -> None:
            current = self.maker is maker and maker.definition == given
            if current and arrived(found, lambda problem: maker.show_verdict(problem, ok=False)):
                maker.show_verdict(plan_words(*found), ok=True)

        self._results.run(checked, shown)

    def _write_new(self, given: dict, path: Path, start: bool) -> None:
        from paretone.studies.definition import to_toml

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_through(path, to_toml(given).encode())
        except OSError as error:
            built(self.maker).show_verdict(f"{path} could not be written: {files.reason(error)}.", ok=False)
            return
        built(self.maker).accept()
        self._notices.note(f"Wrote {path}")
        self.opened.open(path, then=lambda _: self._actions.attempt(self._run) if start else None)

    # --- Results ------------------------------------------------------------------------------------------------------
    def use(self, key: str) -> None:
        """Load a setting of the shown study into Setup, with its strategy table. Raises :class:`PlainError`."""
        seen, state = self._shown, self._state
        row = next((one for one in seen.rows if one.key == key), None)
        if row is None or row.setting is None:
            raise StudyError("Select a setting in the study's table first.")
        if row.served:
            raise StudyError(f"{row.title} is a server; Setup has settings of models that are loaded here.")
        seed = next((one.cell.seed for one in seen.takes.values() if one.cell.setting == key), row.setting.seed)
        state.editing.adopt_setting(replace(row.setting, seed=seed))
        entry = state.artefacts.entry(row.setting)
        source = state.artefacts.source(entry.technique) if entry is not None else None
        if row.finished and source is not None:
            table = seen.load_table(key)
            if table is not None and source.fits(table):
                source.adopt(table, "use a study's strategy table")
        said = f"Loaded “{row.title}” into Setup: Ctrl+Return synthesises, Ctrl+E exports a profile."
        info, others = state.selection.info, ""
        if seen.results is not None and info is not None:
            others = other_weights(seen.results.checkpoint, info.all_weights)
        if others:
            self._notices.warn(f"{said} The study {others}: its figures are not theirs.")
        else:
            self._notices.say(said, "info")

    def export(self, key: str) -> None:
        """Load a setting into Setup and ask where to save its profile. Raises :class:`PlainError`."""
        self.use(key)
        action = self._actions.export_profile
        if not action.isEnabled():
            raise StudyError(action.toolTip())
        action.trigger()

    def hear(self, take: str, title: str, text: str) -> None:
        """Play a take of the shown study. Raises :class:`PlainError` on failure."""
        from paretone_app.audio.sound import Sound
        from paretone_app.features.player.presenter import PlayerPresenter

        player, seen = self._features.find(PlayerPresenter), self.summary
        if seen is None or take not in seen.takes:
            raise StudyError("The take cannot be played: its audio is not there; run the study to make it again.")
        if reason := player.why_not_hear():
            raise StudyError(f"The take cannot be played: {reason}")
        samples, rate = seen.load_audio(take)
        player.hear_sound(Sound(samples, rate, title, text, take))

    def report(self) -> None:
        def written(page: Path | BaseException) -> None:
            built(self.studies).say("")
            if arrived(page, self._notices.warn):
                self._notices.note(f"Wrote {page}")
                self._notices.say(f"Wrote {page}; the CSV and LaTeX tables are in the same folder.", "info")
                QDesktopServices.openUrl(QUrl.fromLocalFile(str(page)))

        folder = self._shown.folder
        built(self.studies).say("Writing the report…")
        self._results.write_report(folder, written)

    def verify(self) -> None:
        """Check the results of the shown study. Raises :class:`PlainError` if there are none."""
        folder = str(self._shown.folder)
        self._state.jobs.start(Kind.VERIFY, lambda number: VerifyStudy(number, folder))

    # --- Damage ------------------------------------------------------------------------------------------------------
    def set_aside(self) -> None:
        """Move damaged results away, so that the study can run again."""
        seen = self.summary
        if seen is None or not seen.damaged:
            return
        try:
            backup = self._results.set_aside(seen.folder)
        except PlainError as error:
            self._notices.warn(str(error))
            return
        self._notices.note(f"Set the damaged study aside: {backup}")
        self._notices.say(f"Moved the damaged results, with audio, to {backup}. Run starts the study over.", "info")

    def _build_studies(self) -> QWidget:
        from paretone_app.features.studies.panel import StudiesPanel

        can = {**self._can, "cancel": self._add_cancel("Cancel", Kind.STUDY)}
        self.studies = panel = StudiesPanel(self._theme.colours, can)
        panel.install.follow(self._state.installing)
        panel.worst.take_chosen.connect(lambda *take: self._actions.attempt(lambda: self.hear(*take)))
        panel.study_chosen.connect(self.opened.choose)
        panel.recent_chosen.connect(lambda place: self.open(Path(place)))
        panel.pages.offer(can["example"], "Open example")
        panel.pages.offer(can["new"])
        for place in self.opened.memory.places():
            self._results.open(place)  # Nothing is saved meanwhile: a crash would lose those not open yet.
        self._show()
        return panel

    def _show(self) -> None:
        self._state.gains.set_studies(self._results.measured)
        if self.studies is None:
            return
        titles = [(folder, one.title) for folder, one in self._results.studies.items()]
        self.studies.show_studies(titles, self.opened.chosen)
        self.studies.show_recent(self.opened.memory.recent)
        self.studies.show_summary(self.summary)
        self.refresh()

    def _reveal(self) -> None:
        seen = self._shown
        place = seen.folder if seen.folder.exists() else seen.file.parent
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(place)))
