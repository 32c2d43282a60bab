"""Takes are judged in the background, one after the other, whenever the engine has nothing else to do."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.state.jobs import Job, Jobs
from engine.errors import PlainError
from engine.models import catalogue
from engine.session.commands import JudgeTake
from engine.session.events import Event, JobCancelled, JobFailed, JobFinished, TakeJudged
from engine.setting.take import Take

IDLE_MILLISECONDS = 1000
"""How long the engine must be idle before a take is judged, so that takes in quick succession never wait."""


@dataclass(frozen=True)
class _Waiting:
    """A take to judge."""

    take: str
    samples: np.ndarray
    rate: int
    prompt: str


class TakeJudging(QObject):
    """Keeps the takes that are to be judged, and hands them to the engine.

    A job that begins cancels the judging, which is done again later: it takes a third of a second at most until the
    job runs.
    """

    judged = Signal(str, object)
    """A take's id, and what the judges say: figures by name."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._waiting: deque[_Waiting] = deque()
        self._running: tuple[int, _Waiting] | None = None
        """The number that the engine knows it by, and the take."""
        self._idle = QTimer(self, singleShot=True, interval=IDLE_MILLISECONDS)
        self._idle.timeout.connect(self._next)
        jobs.began.connect(self._make_way)
        jobs.ended.connect(self._wait)

    def add(self, take: Take) -> None:
        """Judge ``take`` once there is time."""
        self._waiting.append(_Waiting(take.id, take.samples, take.sample_rate, prompt_of(take)))
        self._wait()

    def follow(self, event: Event) -> None:
        """Take in what the engine says of the take that it judges."""
        if self._running is None or event.job != self._running[0]:
            return
        if isinstance(event, TakeJudged):
            self.judged.emit(event.take, event.figures)
        elif isinstance(event, JobFinished | JobCancelled | JobFailed):
            if isinstance(event, JobCancelled):
                self._waiting.appendleft(self._running[1])
            elif isinstance(event, JobFailed):
                # It would fail with every other take, too.
                self._waiting.clear()
            self._running = None
            self._wait()

    def shut_down(self) -> None:
        """Begin nothing more."""
        self._waiting.clear()
        self._idle.stop()

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
            one = self._waiting.popleft()
            number = self._jobs.in_background(
                lambda number: JudgeTake(number, one.take, one.samples, one.rate, one.prompt)
            )
            self._running = number, one


def prompt_of(take: Take) -> str:
    """File of the recording of a take's voice, or ``""`` for voices that are not among the model's own any more."""
    if take.voice.startswith(catalogue.OWN_VOICE):
        return take.voice.removeprefix(catalogue.OWN_VOICE)
    try:
        return catalogue.voice(take.voice, take.setting.model).audio
    except PlainError:
        return ""
