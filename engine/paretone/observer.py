"""Observers of work of every kind. Torch-free."""

from __future__ import annotations

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
        """Finished steps of all chunks."""
        return (self.chunk * self.steps if self.before is None else self.before) + self.step + 1

    @property
    def steps_in_all(self) -> int:
        """Steps of all chunks."""
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
