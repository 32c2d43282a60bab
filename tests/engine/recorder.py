"""Keeps what the engine posts or a model reports, and lets a test wait for it, hold the engine at it, or cancel."""

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from paretone.errors import Cancelled
from paretone.models.base import Piece, Synthesis
from paretone.observer import Observer, StepReport
from paretone.session.commands import Command
from paretone.session.engine_thread import EngineThread
from paretone.session.events import ENDINGS, Event, JobFinished, PreparationReport, Prepared

PATIENCE_SECONDS = 240
"""When a test gives up; never what it measures."""


class Recorder:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.threads: set[str] = set()
        """Names of the threads that posted."""
        self.react: Callable[[Event], None] = lambda event: None
        """Called with every event on the thread that posts it."""
        self._changed = threading.Condition()

    def post(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self.threads.add(threading.current_thread().name)
            self._changed.notify_all()
        self.react(event)

    def wait_for(self, wanted: Callable[[Event], bool]) -> Event:
        def found() -> Event | None:
            return next(filter(wanted, self.events), None)

        with self._changed:
            event = self._changed.wait_for(found, PATIENCE_SECONDS)
        assert event is not None, f"never posted; instead: {[type(one).__name__ for one in self.events]}"
        return event

    def wait_for_kind(self, kind: type, job: int | None = None) -> Event:
        """The first event of ``kind``, or with a report of ``kind`` (of ``job``)."""
        return self.wait_for(lambda event: is_of(event, kind) and job in (None, event.job))

    def end_of(self, job: int) -> Event:
        return self.wait_for(lambda event: isinstance(event, ENDINGS) and event.job == job)

    def finish(self, engine: EngineThread, command: Command) -> None:
        engine.submit(command)
        end = self.end_of(command.job)
        assert isinstance(end, JobFinished), end

    def of(self, job: int, kind: type[Event] = Event) -> list[Event]:
        return [event for event in self.events if event.job == job and isinstance(event, kind)]

    def reports(self, job: int, kind: type = object) -> list[Any]:
        return [event.report for event in self.of(job, PreparationReport) if isinstance(event.report, kind)]

    def result(self, job: int) -> Any:
        (prepared,) = self.of(job, Prepared)
        return prepared.result

    @contextmanager
    def stopped_at(self, kind: type, engine: EngineThread, *commands: Command) -> Iterator[None]:
        """Submit ``commands``; ``engine`` waits at the first event of ``kind`` until the block is over."""
        reached, go_on = threading.Event(), threading.Event()

        def wait(event: Event) -> None:
            if is_of(event, kind) and threading.current_thread().name == "engine":
                reached.set()
                assert go_on.wait(PATIENCE_SECONDS)

        self.react = wait
        for one in commands:
            engine.submit(one)
        assert reached.wait(PATIENCE_SECONDS)
        yield
        go_on.set()


def is_of(event: Event, kind: type) -> bool:
    """Whether ``event``, or what it reports, is of ``kind``."""
    return isinstance(event, kind) or (isinstance(event, PreparationReport) and isinstance(event.report, kind))


def collected(speech: Generator[Piece, None, Synthesis]) -> tuple[list[Piece], Synthesis]:
    pieces: list[Piece] = []
    while True:
        try:
            pieces.append(next(speech))
        except StopIteration as end:
            return pieces, end.value


class Follower(Observer):
    """Keeps reports, and cancels at the check with a number."""

    def __init__(self, cancel_at: int | None = None) -> None:
        self.reports: list[StepReport] = []
        self.checks = 0
        self._cancel_at = cancel_at

    def check(self) -> None:
        self.checks += 1
        if self.checks == self._cancel_at:
            raise Cancelled

    def step(self, report: StepReport) -> None:
        self.reports.append(report)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now
