"""Observers of all kinds of work, estimates of the time left, and cancellation from within. Torch-free."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

Check = Callable[[], None]
"""Called often by long work; raises to stop it."""
Status = Callable[[str], None]
"""Called at the beginning of a new part of the work, with a line to show."""


@dataclass(frozen=True)
class StepReport:
    """One finished step of sampling. For language models a step is a token, and the number of steps an expectation."""

    chunk: int
    chunks: int
    step: int
    steps: int
    seconds: float
    """Wall seconds of this step's backbone evaluation."""
    audio_seconds: float = 0.0
    """Seconds of audio of the running chunk."""
    before: int | None = None
    """Steps of the chunks before this one, and of all chunks; ``None`` if all chunks have equally many."""
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
    """Follows work. This one ignores everything; subclasses override methods of interest, and may raise
    :class:`paretone.errors.Cancelled` in all of them."""

    def check(self) -> None:
        """Called at least once per step, layer trial or token."""

    def status(self, text: str) -> None:
        """Called at the beginning of a new part of the work, with a line to show."""

    def caution(self, sentence: str) -> None:
        """Called before speaking, with cautions about the voice."""

    def step(self, report: StepReport) -> None:
        """Called after every step of a sampling loop."""

    def progress(self, done: int, total: int) -> None:
        """Called with the finished part of the work, in its own units."""

    def report(self, name: str, value: Any) -> None:
        """Called with a technique's intermediate results, such as a trial or a loss, frozen and picklable, under a name
        of the technique's choice. Reaches front ends as :class:`paretone.session.events.PreparationReport`."""


SILENT = Observer()


class Passing(Observer):
    """Passes some methods on to an observer, or to a terminal; all others only check for cancellation."""

    def __init__(self, observer: object, *passed: str) -> None:
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
"""Half-life of the weight of earlier progress."""
MINIMUM_SECONDS = 0.5
MINIMUM_UPDATES = 3


class RemainingTime:
    """Estimates the seconds left from the recent pace. Time and units decay alike, so that the pace is a weighted mean,
    with more weight on recent work; without enough evidence there is no estimate. Work before the first update is
    ignored: it may be from an earlier session, or include one-time work. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._started = self._last = 0.0
        self._done = 0.0
        self._updates = 0
        self._seconds = 0.0
        self._units = 0.0

    def update(self, done: float, total: float) -> float | None:
        """Seconds left after ``done`` of ``total`` units, or ``None`` until they can be estimated."""
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
        """The pace; 0 while unknown."""
        return self._units / self._seconds if self._seconds > 0 else 0.0


_check: ContextVar[Check] = ContextVar("check", default=lambda: None)


@contextmanager
def stoppable(check: Check) -> Iterator[None]:
    """Let ``check`` stop this thread's work in the block by raising. Checks of outer blocks stay in force."""
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
    """Raise if the current work is to stop."""
    _check.get()()


class Work:
    """Counts units of work for an observer and lets it stop the work."""

    def __init__(self, observer: Observer, total: float) -> None:
        self._observer, self._total, self._done = observer, total, 0.0

    def check(self) -> None:
        self._observer.check()

    def done(self, units: float = 1) -> None:
        self.reached(self._done + units)

    def finish(self) -> None:
        self.reached(self._total)

    def reached(self, units: float) -> None:
        """Raise the number of finished units to at least this."""
        self._observer.check()
        self._done = min(max(self._done, units), self._total)
        self._observer.progress(round(self._done), round(self._total))
