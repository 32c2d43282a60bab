"""Base of presenters, and what they are given. A presenter binds the panels and actions of one feature to the state.

A presenter is made once, when the window is. It binds its actions and puts panels that are there at once into their
docks. Panels that draw with pyqtgraph come later, so that the window is painted first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, QSettings, Signal
from PySide6.QtWidgets import QMainWindow, QWidget

from paretone.session.events import Event, Progress, Telemetry
from paretone_app.results.reader import Results
from paretone_app.shell import file_dialogs
from paretone_app.shell.actions import Actions
from paretone_app.shell.bars import StatusLine
from paretone_app.shell.entries import MainStep, TourStop
from paretone_app.shell.notices import Notices
from paretone_app.shell.theme import Theme
from paretone_app.shell.workspaces import Workspaces
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Kind
from paretone_app.widgets.action import Action

Panel = TypeVar("Panel", bound=QWidget)
Found = TypeVar("Found")


@dataclass(frozen=True)
class Part:
    """One thing to do at a stop of the tour."""

    hint: str
    """What to press, as the end of a sentence."""
    control: Callable[[], QWidget | None]
    """Where it is done; ``None`` if that is not in sight."""
    done: Callable[[], bool]
    help: Callable[[], object]
    """Does it for the user. May raise :class:`paretone.errors.PlainError`."""
    why_not: Callable[[], str] = lambda: ""
    """Why it cannot be done now, as a sentence, or ``""``."""
    help_text: str = "Do it for me"
    place: str = ""
    """Name of the panel that it is in, if that is not the stop's."""


class Presenter(QObject):
    """Interface of presenters for the window. A feature overrides what concerns it."""

    changed = Signal()
    """Something changed that other features show: the window refreshes them all."""

    later: Mapping[str, Callable[[], QWidget]] = {}
    """Panels to build after the first paint, by the name of their place."""

    def __init__(self, services: Services) -> None:
        super().__init__(services.window)
        self._window = services.window
        self._state = services.state
        self._results = services.results
        self._actions = services.actions
        self._workspaces = services.workspaces
        self._notices = services.notices
        self._theme = services.theme

    def _ask_where_to_write(self, title: str, kinds: str, proposal: str, write: Callable[[Path], object]) -> None:
        """Ask for a file and write it; a problem that the user can act on is reported."""
        file_dialogs.ask_where_to_write(
            self._window, title, kinds, proposal, lambda path: self._actions.attempt(lambda: write(path))
        )

    def _add_exports(self, what: str, ask: Callable[[str], object]) -> tuple[Action, ...]:
        """For each kind of file an action that saves ``what``: ``ask`` is given the file's ending."""
        return tuple(
            self._actions.add(ending.upper(), partial(ask, ending), f"Save {what} as {ending.upper()}")
            for ending in file_dialogs.PLOTS
        )

    def _add_cancel(self, text: str, kind: Kind, tip: str = "") -> Action:
        """An action that cancels while a job of ``kind`` runs."""

        def why_not() -> str:
            return "" if any(job.kind is kind for job in self._state.jobs.running) else "Nothing to cancel."

        return self._actions.add(text, self._actions.cancel.trigger, tip, why_not)

    def engine_starts(self) -> None:
        """The window was painted and the engine starts: report what went wrong before."""

    def panels_built(self) -> None:
        """All panels are there."""

    def follow(self, event: Event) -> None:
        """Take in an event of the engine. The state has it already; a job that it ends still counts as running."""

    def show_progress(self, event: Progress) -> None:
        """Show how far a job is, at most twelve times a second."""

    def show_telemetry(self, event: Telemetry) -> None:
        """Show live figures of a synthesis, at most twelve times a second."""

    def show_reports(self, events: Sequence[Event]) -> None:
        """Show what preparations reported since the last call, at most twelve times a second."""

    def refresh(self) -> None:
        """Show the present state: enable what can be done, and say why the rest cannot."""

    def step_done(self, action: str) -> bool | None:
        """Whether the feature's step of the main job, which ``action`` does, is done for what is selected now; ``None``
        if the chosen model has no such step."""
        return None

    def step_changed(self, action: str) -> bool:
        """Whether the step of ``action``, which is not done, was done for what was selected before."""
        return False

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        """What there is to do at the feature's ``stop`` of the tour, in order: an action by its name for each step of
        the main job. Nothing where there is only something to read."""
        return ()

    def shut_down(self) -> None:
        """The window closes and the engine has stopped: end threads, close files."""


class Presenters:
    """The presenters of a window, by the names of their features, in the order of the list."""

    def __init__(self) -> None:
        self._made: dict[str, Presenter] = {}

    def add(self, name: str, presenter: Presenter) -> None:
        self._made[name] = presenter

    def __getitem__(self, name: str) -> Presenter:
        return self._made[name]

    def __iter__(self) -> Iterator[Presenter]:
        return iter(self._made.values())

    def find(self, kind: type[Found]) -> Found:
        """The presenter of this class. While presenters are made, only those before in the list are there."""
        for one in self._made.values():
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
    """The stops of the tour, likewise."""
    terms: Sequence[str] = ()
    """Where the features' terms of the glossary are, as they declare it."""
    features: Presenters = field(default_factory=Presenters)


def built(panel: Panel | None) -> Panel:
    """``panel``, in what happens only once there is one: because it was asked for there, for example. Raises
    :class:`RuntimeError` if there is none yet."""
    if panel is None:
        raise RuntimeError("The panel has not been built yet.")
    return panel
