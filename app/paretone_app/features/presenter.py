"""Base class of presenters, and their services. A presenter, created once with the window, binds the panels and actions
of one feature to the state. Panels that draw with pyqtgraph are built later, so that the window is painted first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, QSettings, Qt, Signal
from PySide6.QtWidgets import QMainWindow, QWidget

from paretone.session.events import Event, Progress, Telemetry
from paretone_app.results.reader import Results
from paretone_app.shell import file_dialogs
from paretone_app.shell.actions import Actions
from paretone_app.shell.bars import StatusLine
from paretone_app.shell.entries import Findable, MainStep, Place, TourStop
from paretone_app.shell.notices import Level, Notices
from paretone_app.shell.theme import Theme
from paretone_app.shell.workspaces import Workspaces
from paretone_app.state.app_state import AppState
from paretone_app.state.artefact_store import ArtefactStore
from paretone_app.state.jobs import Job, Kind, Outcome
from paretone_app.widgets.action import Action

if TYPE_CHECKING:
    from paretone_app.widgets.panel_parts import JobProgress

Panel = TypeVar("Panel", bound=QWidget)
Found = TypeVar("Found")


@dataclass(frozen=True)
class Part:
    """One task at a stop of the tour."""

    hint: str
    """What to press, as the end of a sentence."""
    control: Callable[[], QWidget | None]
    """Control to press; ``None`` if out of sight."""
    done: Callable[[], bool]
    help: Callable[[], object]
    """Does it for the user. May raise :class:`paretone.errors.PlainError`."""
    why_not: Callable[[], str] = lambda: ""
    """Why it cannot be done now, as a sentence, or ``""``."""
    help_text: str = "Do it for me"
    place: str = ""
    """Name of its panel, if not the stop's."""


class Presenter(QObject):
    """Interface of presenters for the window. A feature overrides what concerns it."""

    changed = Signal()
    """State shown by other features changed: the window refreshes them all."""

    later: Mapping[str, Callable[[], QWidget]] = {}
    """Panels to build after the first paint, by the name of their place; the window then refreshes their presenter."""

    _own_job = 0
    """Number of the feature's last job, whose progress :attr:`_bar` shows."""
    _bar: JobProgress | None = None

    def __init__(self, services: Services) -> None:
        super().__init__(services.window)
        self._window = services.window
        self._state = services.state
        self._results = services.results
        self._actions = services.actions
        self._workspaces = services.workspaces
        self._notices = services.notices
        self._theme = services.theme
        self._state.jobs.began.connect(self.job_began)
        self._state.jobs.ended.connect(self.job_ended)

    def _ask_where_to_write(self, title: str, kinds: str, proposal: str, write: Callable[[Path], object]) -> None:
        """Ask for a file and write it; report problems that the user can act on."""
        file_dialogs.ask_where_to_write(self._window, title, kinds, proposal, self._attempting(write))

    def _attempting(self, use: Callable[[Path], object]) -> Callable[[Path], None]:
        return lambda path: self._actions.attempt(lambda: use(path))

    def _ask_for_file(self, title: str, kinds: str, use: Callable[[Path], object], of_engine: bool = False) -> None:
        """Ask for a file (``of_engine``: on the engine's machine) and use it; report what the user can mend."""
        if not (of_engine and self._ask_on_host(title, use, files=True)):
            file_dialogs.ask_for_file(self._window, title, kinds, self._attempting(use))

    def _ask_for_folder(self, title: str, use: Callable[[Path], object], of_engine: bool = False) -> None:
        """Ask for a folder and use it; report problems that the user can act on. ``of_engine``: as above."""
        if not (of_engine and self._ask_on_host(title, use)):
            file_dialogs.ask_for_folder(self._window, title, self._attempting(use))

    def _ask_on_host(self, title: str, use: Callable[[Path], object], files: bool = False) -> bool:
        """Ask for a folder or file of the engine's machine, if that is another one."""
        machine = self._state.machine
        if machine.ask is None:
            return False
        from paretone_app.engines.dialogs import HostFolder

        HostFolder(self._window, title, machine.host, machine.ask, self._attempting(use), files).open()
        return True

    def _opened(self, kind: type[Panel]) -> Panel | None:
        return self._window.findChild(kind, options=Qt.FindChildOption.FindDirectChildrenOnly)

    def _add_exports(self, what: str, ask: Callable[[str], object]) -> tuple[Action, ...]:
        """Add an action per file type that saves ``what``; ``ask`` gets the file's ending."""
        return tuple(
            self._actions.add(ending.upper(), partial(ask, ending), f"Save {what} as {ending.upper()}")
            for ending in file_dialogs.PLOTS
        )

    def _add_cancel(self, text: str, kind: Kind, tip: str = "") -> Action:
        """Add an action that cancels the job of ``kind`` under way, or the next that waits."""
        jobs = self._state.jobs
        return self._actions.add(
            text,
            lambda: jobs.cancel(next(job for job in jobs.all if job.kind is kind)),
            tip,
            lambda: "" if jobs.why_one(kind, "yes") else "Nothing to cancel.",
        )

    def engine_starts(self) -> None:
        """Report earlier problems; called once the window is painted and the engine starts."""

    def panels_built(self) -> None:
        """Called once all panels are built."""

    def follow(self, event: Event) -> None:
        """Handle an engine event. The state is updated already; a job that the event ends still counts as running."""

    def job_began(self, job: Job) -> None: ...

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        """``sentence``: the reason for a failure, or ``""``."""

    def show_progress(self, event: Progress) -> None:
        """Show a job's progress, at most 12 times per second; by default, that of the feature's own job in its bar."""
        if self._bar is not None and event.job == self._own_job and self._state.jobs.find(event.job) is not None:
            self._bar.show_progress(event.done, event.total, event.seconds_left)

    def show_telemetry(self, event: Telemetry) -> None:
        """Show live figures of a synthesis, at most 12 times per second."""

    def show_reports(self, events: Sequence[Event]) -> None:
        """Show reports of preparation jobs since the last call, at most 12 times per second."""

    def refresh(self) -> None:
        """Show the current state; enable available actions and give reasons for the others."""

    def step_done(self, action: str) -> bool | None:
        """Whether main-job step ``action`` is done for the current selection; ``None`` if the model lacks the step."""
        return None

    def step_changed(self, action: str) -> bool:
        """Whether step ``action``, now not done, was done for an earlier selection."""
        return False

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        """Parts of the tour's ``stop``, in order, a main-job step as its action's name; empty if it is only read."""
        return ()

    def findable(self) -> Iterable[Findable]:
        """What the palette finds here."""
        return ()

    def shut_down(self) -> None:
        """End threads and close files; called when the window closes, after the engine has stopped."""


class StorePresenter(Presenter):
    """A presenter of an artefact store: reports unusable files, and writes the artefact in use."""

    state: ArtefactStore

    def engine_starts(self) -> None:
        for sentence in self.state.problems:
            self._notices.note(sentence, Level.WARNING)
        self.state.problems.clear()

    def follow(self, event: Event) -> None:
        self.state.follow(event)
        for sentence in self.state.problems:
            self._notices.warn(sentence)
        self.state.problems.clear()

    def _add_saving(self, what: str, none: str, title: str) -> Action:
        """Add an action that saves the artefact in use, the option ``--what``; ``none``: why there is nothing."""

        def ask() -> None:
            if self.state.artefact is not None:
                self._ask_where_to_write(title, file_dialogs.JSON, self.state.proposal(self.state.artefact), self.write)

        tip = f"Save as JSON, for --{what}"
        return self._actions.add(f"Save &{what}…", ask, tip, lambda: "" if self.state.artefact else none)

    def write(self, path: Path) -> None:
        """Write the artefact in use to ``path``. Raises :class:`PlainError` when it cannot be written."""
        if self.state.write(path):
            self._notices.note(f"Wrote {path}")


class Presenters(dict[str, Presenter]):
    """Presenters by feature name, in the order of the list."""

    def find(self, kind: type[Found]) -> Found:
        """The presenter of this class. During construction only earlier ones exist. Raises :class:`LookupError`."""
        for one in self.values():
            if isinstance(one, kind):
                return one
        raise LookupError(f"There is no {kind.__name__} (yet); list its feature, before those that need it at once.")


@dataclass(frozen=True)
class Services:
    window: QMainWindow
    state: AppState
    results: Results
    actions: Actions
    workspaces: Workspaces
    notices: Notices
    status: StatusLine
    theme: Theme
    settings: QSettings
    folder: Path
    job: Mapping[MainStep, str] = field(default_factory=dict)
    """The steps of the main job, in order, each with the name of its feature."""
    stops: Mapping[TourStop, str] = field(default_factory=dict)
    """The stops of the tour, in order, each with the name of its feature."""
    terms: Sequence[str] = ()
    """Glossary terms of the features, as ``"package.module:TERMS"``."""
    keys: Sequence[tuple[Place, str, str]] = ()
    """Keys of the panels: where, what they do, and which."""
    features: Presenters = field(default_factory=Presenters)


def built(panel: Panel | None) -> Panel:
    """``panel``, which must exist. Raises :class:`RuntimeError` if it has not been built yet."""
    if panel is None:
        raise RuntimeError("The panel has not been built yet.")
    return panel


def listed_in(settings: QSettings, name: str) -> list[str]:
    """Texts that the settings keep as a JSON list under ``name``; none if it is missing or damaged."""
    try:
        found = json.loads(str(settings.value(name, "[]")))
    except ValueError:
        return []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
