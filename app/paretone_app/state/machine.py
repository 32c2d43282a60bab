"""The machine: the engine's devices, and optional packages to install."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from PySide6.QtCore import QObject, Signal

from paretone import extras
from paretone.computing import Computing
from paretone.errors import SettingError
from paretone.extras import SEARCH, Extra, why_no_search
from paretone.session.commands import InstallExtra
from paretone.session.events import EngineReady, Event, ExtraInstalled, Progress
from paretone_app.state.jobs import Job, Jobs, Kind, Outcome


class Machine(QObject):
    """Empty until the engine is ready."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.device = ""
        self.devices: tuple[str, ...] = ()
        self.title = ""
        self.computing: Computing | None = None
        """The engine's device, and why it is not a GPU."""
        self.host = ""
        """The machine with the engine; ``""``: this one."""
        self.connected = True
        self.round_trip: float | None = None
        """Seconds there and back."""
        self.lacking: Mapping[str, str] = {}
        """What the host said of its judges and of searches: why each is unusable there, by name; ``""``: it is not."""
        self.ask: Callable[[str, str], Future[Any]] | None = None
        """Asks the host about its files; ``None``: they are this machine's."""

    def problem_of(self, name: str) -> str:
        """Why the judge ``name``, or ``search``, is unusable on the engine's machine, as a sentence, or ``""``."""
        if self.host:
            problem = self.lacking.get(name, "")
            return f"On {self.host}: {problem}" if problem else ""
        if name == SEARCH:
            return why_no_search()
        from paretone.measure.evaluation.judges import judge_named

        return judge_named(name).problem()

    def set_line(self, host: str, connected: bool = False, round_trip: float | None = None) -> None:
        """State of the line to the engine's machine."""
        line = host, connected or not host, None if round_trip is None else round(round_trip, 3)
        if line != (self.host, self.connected, self.round_trip):
            self.host, self.connected, self.round_trip = line
            self.changed.emit()

    def follow(self, event: Event) -> None:
        if isinstance(event, EngineReady):
            self.device, self.devices, self.title = event.device, event.devices, event.machine
            self.computing = event.computing
            self.changed.emit()


class Installing(QObject):
    changed = Signal()
    """An installation started, progressed or ended."""
    installed = Signal(object, bool)
    """An :class:`~paretone.extras.Extra` was installed, and whether it works without a restart."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._job: Job | None = None
        self.running: Extra | None = None
        self.text = ""
        jobs.ended.connect(self._job_ended)

    def why_not(self) -> str:
        return extras.why_no_installing() or self._jobs.why_one(Kind.INSTALL, "Packages are being installed.")

    def start(self, name: str) -> None:
        if reason := self.why_not():
            raise SettingError(reason)
        self.running, self.text = extras.extra(name), ""
        self._job = self._jobs.start(Kind.INSTALL, lambda job: InstallExtra(job, name))
        self.changed.emit()

    def cancel(self) -> None:
        if self._job is not None:
            self._jobs.cancel(self._job)

    def show_progress(self, event: Progress) -> None:
        if self._job is not None and event.job == self._job.number and event.text != self.text:
            self.text = event.text
            self.changed.emit()

    def follow(self, event: Event) -> None:
        if isinstance(event, ExtraInstalled):
            self.installed.emit(extras.extra(event.extra), event.ready)

    def _job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        if job == self._job:
            self._job, self.running, self.text = None, None, ""
            self.changed.emit()
