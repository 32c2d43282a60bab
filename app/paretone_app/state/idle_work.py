"""Work that nobody waits for, done one piece after the other whenever the engine has nothing else to do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from paretone.session.commands import Command
from paretone.session.events import Event, JobCancelled, JobFailed, JobFinished
from paretone_app.state.jobs import Job, Jobs

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
        """Whether a piece is under way or waits."""
        return self._running is not None or bool(self._waiting)

    def add(self, piece: Piece) -> None:
        """Do ``piece`` once there is time."""
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
        """Do nothing more after the piece under way."""
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
