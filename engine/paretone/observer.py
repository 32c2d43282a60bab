"""Observers of work of every kind, how long it will still take, and stopping it from within. Torch-free."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StepReport:
    """One finished step of a sampling loop. Language models take a token for a step, and as many steps as they are
    expected to need."""

    chunk: int
    chunks: int
    step: int
    steps: int
    seconds: float
    """Wall seconds of this step's backbone evaluation."""
    audio_seconds: float = 0.0
    """Seconds of audio of the running chunk."""
    before: int | None = None
    """Steps of the chunks before this one, and of all chunks; ``None`` if every chunk has as many."""
    total: int | None = None
    tokens: int | None = None
    """Tokens committed so far in all chunks; ``None`` for models without tokens."""

    @property
    def steps_done(self) -> int:
        return (self.chunk * self.steps if self.before is None else self.before) + self.step + 1

    @property
    def steps_in_all(self) -> int:
        return self.chunks * self.steps if self.total is None else self.total


class Observer:
    """Follows work. This one lets everything pass; subclasses override what they want to know, and may raise
    :class:`paretone.errors.Cancelled` in every method."""

    def check(self) -> None:
        """Called at least once per step, layer trial or token."""

    def status(self, text: str) -> None:
        """Called when the work enters a new part, with a line to show."""

    def caution(self, sentence: str) -> None:
        """Called before anything is spoken, with what the user should know of the voice."""

    def step(self, report: StepReport) -> None:
        """Called after every step of a sampling loop."""

    def progress(self, done: int, total: int) -> None:
        """Called with the share of the work that is done, in units of its own."""

    def report(self, name: str, value: Any) -> None:
        """Called with what a technique finds on the way, frozen and picklable, under a name of its own: a trial, a
        loss. Reaches front ends as :class:`paretone.session.events.PreparationReport`."""


SILENT = Observer()


class Passing(Observer):
    """Passes some methods on to another observer; all others only check whether to stop."""

    def __init__(self, observer: Observer, *passed: str) -> None:
        """``passed`` are the names of these methods."""
        for name in ("check", *passed):
            setattr(self, name, getattr(observer, name))

    def status(self, text: str) -> None:
        self.check()

    def caution(self, sentence: str) -> None:
        self.check()

    def step(self, report: StepReport) -> None:
        self.check()

    def progress(self, done: int, total: int) -> None:
        self.check()

    def report(self, name: str, value: Any) -> None:
        self.check()


HALF_LIFE_SECONDS = 4.0
"""After this time, what was seen counts half."""
MINIMUM_SECONDS = 0.5
MINIMUM_UPDATES = 3


class RemainingTime:
    """Estimates the seconds left from the pace of the last seconds.

    Time and units decay alike, so that the pace is a weighted mean over all that was seen, recent work counting more;
    without enough evidence there is no estimate. What was done before the first update is no evidence: it may stem from
    an earlier session, or include what happens only once. ``clock`` gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._started = self._last = 0.0
        self._done = 0
        self._updates = 0
        self._seconds = 0.0
        self._units = 0.0

    def update(self, done: int, total: int) -> float | None:
        """Seconds left once ``done`` of ``total`` units are done, or ``None`` until that can be estimated."""
        now = self._clock()
        if self._updates == 0:
            self._started = now
        else:
            passed, units = now - self._last, done - self._done
            decay = 0.5 ** (passed / HALF_LIFE_SECONDS)
            self._seconds = self._seconds * decay + passed
            self._units = self._units * decay + units
        self._last, self._done = now, done
        self._updates += 1
        if done >= total:
            return 0.0
        enough = self._updates >= MINIMUM_UPDATES and now - self._started >= MINIMUM_SECONDS
        return (total - done) * self._seconds / self._units if enough and self._units > 0 else None

    @property
    def units_per_second(self) -> float:
        """The pace; 0 before anything is known."""
        return self._units / self._seconds if self._seconds > 0 else 0.0


def _go_on() -> None:
    pass


_check: ContextVar[Callable[[], None]] = ContextVar("check", default=_go_on)


@contextmanager
def stoppable(check: Callable[[], None]) -> Iterator[None]:
    """Let ``check`` end, by raising, what this thread does within the block. Checks of outer blocks stay in force."""
    around = _check.get()

    def both() -> None:
        check()
        around()

    token = _check.set(both)
    try:
        yield
    finally:
        _check.reset(token)


def may_stop() -> None:
    """Raise if what is being done is to be stopped."""
    _check.get()()
