"""Receives the progress of a training."""

from __future__ import annotations

from typing import Protocol

from engine.training.session import Milestone


class Follower(Protocol):
    """Every method may raise :class:`engine.errors.Cancelled`."""

    def check(self) -> None:
        """Called often."""

    def status(self, text: str) -> None:
        """Called with a line when another part begins, and with the losses now and then."""

    def progress(self, done: int, total: int) -> None:
        """Called while speech is prepared."""

    def milestone(self, milestone: Milestone) -> None:
        """Called after every step and validation."""


class SilentFollower:
    """Shows nothing: what all processes but the first are followed by."""

    def check(self) -> None: ...

    def status(self, text: str) -> None: ...

    def progress(self, done: int, total: int) -> None: ...

    def milestone(self, milestone: Milestone) -> None: ...
