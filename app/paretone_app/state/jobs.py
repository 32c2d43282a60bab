"""Jobs that the application has handed to the engine, until they end, and work that is done while the engine is
idle."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from paretone.session.commands import Cancel, Command, Hold, PauseStudy, Release
from paretone.session.events import EngineHeld, Event, JobCancelled, JobFailed, JobFinished, StudyEnded


class Kind(Enum):
    LOAD = "Loading the model"
    DOWNLOAD = "Downloading"
    INSTALL = "Installing packages"
    BASELINE = "Synthesising the baseline"
    ACCELERATED = "Synthesising with techniques"
    CALIBRATE = "Calibrating"
    ATTENTION = "Capturing attention"
    VIEW = "Computing the view"
    TRANSFER = "Measuring the transfer"
    TRAIN = "Training"
    LAYERS = "Measuring the layers"
    ROOFLINE = "Measuring the roofline"
    STUDY = "Running the study"
    PARTIAL = "Decoding the canvas"
    EXPORT = "Exporting"
    GRID = "Searching a grid"
    GROUPS = "Finding token groups"
    TOKENS = "Decoding tokens"
    MAKE = "Making takes"
    REPEAT = "Timing takes again"


class Outcome(Enum):
    FINISHED = "finished"
    PAUSED = "paused"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Job:
    """One job under way. ``command`` is what the engine was given."""

    number: int
    kind: Kind
    command: Command
    started: float = field(default_factory=time.monotonic)


class Jobs(QObject):
    """Numbers jobs, submits their commands and follows them to their end."""

    began = Signal(object)
    ended = Signal(object, object, str)
    """A :class:`Job`, its :class:`Outcome`, and the sentence that says why it failed or ``""``."""
    cancelling = Signal()
    """The user wants everything to end: what is to follow a job that may have ended by now, too."""
    paused = Signal()
    """Background work is paused, after :meth:`hold`."""

    def __init__(self, submit: Callable[[Command], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._submit = submit
        self._last = 0
        self._running: dict[int, Job] = {}
        self._held = False
        self._pausing = False
        """Whether the study that ends next was paused."""

    @property
    def running(self) -> tuple[Job, ...]:
        return tuple(self._running.values())

    @property
    def busy(self) -> bool:
        return bool(self._running)

    @property
    def why_wait(self) -> str:
        """Why nothing else can begin now, as a sentence, or ``""``."""
        return "Wait for the running job, or press Esc to cancel it." if self.busy else ""

    def find(self, number: int) -> Job | None:
        return self._running.get(number)

    def start(self, kind: Kind, command: Callable[[int], Command]) -> Job:
        self._last += 1
        job = Job(self._last, kind, command(self._last))
        self._running[job.number] = job
        self._submit(job.command)
        self.began.emit(job)
        return job

    def in_background(self, command: Callable[[int], Command]) -> int:
        """Submit ``command(number)`` as work that nobody waits for, and that is no job: nothing says that it runs. Its
        number."""
        self._last += 1
        self._submit(command(self._last))
        return self._last

    def cancel_background(self, number: int) -> None:
        """Cancel what :meth:`in_background` submitted."""
        self._submit(Cancel(0, number))

    def hold(self) -> None:
        """Let nothing compute until :meth:`release`: running jobs pause, new ones wait. A take that is being made
        is finished first; then :attr:`paused` is emitted."""
        if not self._held:
            self._held = True
            self._submit(Hold(0))

    def release(self) -> None:
        if self._held:
            self._held = False
            self._submit(Release(0))

    @property
    def held(self) -> bool:
        return self._held

    def cancel_all(self) -> None:
        """Ask the engine to cancel everything that has not ended, the newest first so that nothing waiting starts."""
        for job in reversed(self.running):
            self._submit(Cancel(0, job.number))
        self.cancelling.emit()

    def cancel(self, job: Job) -> None:
        self._submit(Cancel(0, job.number))

    def pause(self, job: Job) -> None:
        """Ask the engine to end the study that ``job`` runs once the takes under way are finished."""
        self._submit(PauseStudy(0, job.number))

    def handle(self, event: Event) -> None:
        """Process the end of a job and the pause; ignore other events."""
        if isinstance(event, EngineHeld) and self._held:
            self.paused.emit()
        if isinstance(event, StudyEnded):
            self._pausing = event.paused
        outcomes = {JobFinished: Outcome.FINISHED, JobFailed: Outcome.FAILED, JobCancelled: Outcome.CANCELLED}
        outcome = outcomes.get(type(event))
        job = self._running.get(event.job)
        if outcome is not None and job is not None:
            del self._running[event.job]
            if job.kind is Kind.STUDY and outcome is Outcome.FINISHED and self._pausing:
                outcome = Outcome.PAUSED
            self.ended.emit(job, outcome, event.sentence if isinstance(event, JobFailed) else "")


IDLE_MILLISECONDS = 1000
"""How long the engine must be idle before a piece begins, so that jobs in quick succession never wait."""


@dataclass(frozen=True)
class Piece:
    """One piece of work: what it is about, and its command, given a number."""

    what: object
    command: Callable[[int], Command]


class IdleWork(QObject):
    """Keeps what is to be done, and hands it to the engine. A job that begins cancels the piece under way, which is
    done again later."""

    happened = Signal(object, object)
    """What a piece is about, and an event that it caused."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._waiting: deque[Piece] = deque()
        self._running: tuple[int, Piece] | None = None
        """The number that the engine knows it by, and the piece."""
        self._unwanted = False
        """Whether the piece under way is not wanted any more."""
        self._idle = QTimer(self, singleShot=True, interval=IDLE_MILLISECONDS)
        self._idle.timeout.connect(self._next)
        jobs.began.connect(self._make_way)
        jobs.ended.connect(self._wait)

    @property
    def busy(self) -> bool:
        return self._running is not None or bool(self._waiting)

    def add(self, piece: Piece) -> None:
        self._waiting.append(piece)
        self._wait()

    def replace(self, pieces: Iterable[Piece]) -> None:
        """Do these, in this order, and nothing else; what is under way ends if it is not one of them."""
        wanted = {one.what: one for one in pieces}
        if self._running is not None:
            self._unwanted = self._running[1].what not in wanted
            wanted.pop(self._running[1].what, None)
            if self._unwanted:
                self._jobs.cancel_background(self._running[0])
        self._waiting = deque(wanted.values())
        self._wait()

    def clear(self) -> None:
        self._waiting.clear()
        self._unwanted = self._running is not None
        self._idle.stop()

    def follow(self, event: Event) -> None:
        """Take in an event of the engine, if it is about the piece under way."""
        if self._running is None or event.job != self._running[0]:
            return
        piece = self._running[1]
        if isinstance(event, JobFinished | JobCancelled | JobFailed):
            self._running = None
            if isinstance(event, JobCancelled) and not self._unwanted:
                self._waiting.appendleft(piece)
            self._unwanted = False
        self.happened.emit(piece.what, event)
        self._wait()

    @Slot()
    @Slot(object, object, str)
    def _wait(self, *ended: object) -> None:
        if self._waiting and self._running is None:
            self._idle.start()

    @Slot(object)
    def _make_way(self, job: Job) -> None:
        self._idle.stop()
        if self._running is not None:
            self._jobs.cancel_background(self._running[0])

    @Slot()
    def _next(self) -> None:
        if self._jobs.held:
            self._idle.start()
        elif self._waiting and self._running is None and not self._jobs.busy:
            piece = self._waiting.popleft()
            self._running = self._jobs.in_background(piece.command), piece
