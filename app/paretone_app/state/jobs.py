"""Jobs submitted to the engine, until they end, and work for idle times."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from PySide6.QtCore import QObject, QTimer, Signal

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
    VERIFY = "Verifying the study"
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
    """A job under way, with the command submitted to the engine."""

    number: int
    kind: Kind
    command: Command
    started: float = field(default_factory=time.monotonic)


class Jobs(QObject):
    """Numbers jobs, submits their commands and tracks them to their end."""

    began = Signal(object)
    ended = Signal(object, object, str)
    """A :class:`Job`, its :class:`Outcome`, and the reason for a failure as a sentence, or ``""``."""
    cancelling = Signal()
    """The user cancels everything, including planned successors of jobs that may already have ended."""
    paused = Signal()
    """Background work is paused, as requested by :meth:`hold`."""

    def __init__(self, submit: Callable[[Command], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._submit = submit
        self._last = 0
        self._running: dict[int, Job] = {}
        self.held = False
        self._pausing = False

    @property
    def running(self) -> tuple[Job, ...]:
        return tuple(self._running.values())

    @property
    def busy(self) -> bool:
        return bool(self._running)

    @property
    def why_wait(self) -> str:
        """Why nothing else can start now, as a sentence, or ``""``."""
        return "Wait for the running job, or press Esc to cancel it." if self.busy else ""

    def why_wait_for(self, kind: Kind, sentence: str) -> str:
        """The same, as ``sentence`` while a job of this kind runs."""
        return sentence if any(job.kind is kind for job in self.running) else self.why_wait

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
        """Submit ``command(number)`` as silent work, not as a job; returns the number."""
        self._last += 1
        self._submit(command(self._last))
        return self._last

    def cancel_background(self, number: int) -> None:
        self._submit(Cancel(0, number))

    def hold(self) -> None:
        """Suspend all computation until :meth:`release`: running jobs pause, new ones wait. A take under way is
        finished first; then :attr:`paused` is emitted."""
        if not self.held:
            self.held = True
            self._submit(Hold(0))

    def release(self) -> None:
        if self.held:
            self.held = False
            self._submit(Release(0))

    def cancel_all(self) -> None:
        """Cancel all jobs, the newest first so that no waiting one starts."""
        for job in reversed(self.running):
            self._submit(Cancel(0, job.number))
        self.cancelling.emit()

    def cancel(self, job: Job) -> None:
        self._submit(Cancel(0, job.number))

    def pause(self, job: Job) -> None:
        """Let the study of ``job`` finish the takes under way and then pause."""
        self._submit(PauseStudy(0, job.number))

    def handle(self, event: Event) -> None:
        """Process the end of a job, or the pause; ignore other events."""
        if isinstance(event, EngineHeld) and self.held:
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
"""Idle time of the engine before a piece starts, so that jobs in quick succession never wait."""


@dataclass(frozen=True)
class Piece:
    what: object
    command: Callable[[int], Command]


class IdleWork(QObject):
    """Queue of work for idle times. A new job cancels the current piece, which is repeated later."""

    happened = Signal(object, object)
    """Subject of a piece, and an event from it."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._waiting: deque[Piece] = deque()
        self._running: tuple[int, Piece] | None = None
        """Number of the command, and its piece."""
        self._unwanted = False
        """Whether the current piece is no longer wanted."""
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
        """Replace the queue; cancel the current piece unless it is among ``pieces``."""
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

    def _wait(self, *ended: object) -> None:
        if self._waiting and self._running is None:
            self._idle.start()

    def _make_way(self, job: Job) -> None:
        self._idle.stop()
        if self._running is not None:
            self._jobs.cancel_background(self._running[0])

    def _next(self) -> None:
        if self._jobs.held:
            self._idle.start()
        elif self._waiting and self._running is None and not self._jobs.busy:
            piece = self._waiting.popleft()
            self._running = self._jobs.in_background(piece.command), piece
