"""Receives the progress of a training."""

from __future__ import annotations

from typing import Protocol

from paretone.models.base import WorkObserver
from paretone.training.session import Milestone


class Follower(WorkObserver, Protocol):
    """Follower of a training; its progress is that of preparing speech. Every method may raise
    :class:`paretone.errors.Cancelled`."""

    def milestone(self, milestone: Milestone) -> None:
        """Called after every step and validation."""


class SilentFollower:
    """Shows nothing: what all processes but the first are followed by."""

    def check(self) -> None: ...

    def status(self, text: str) -> None: ...

    def progress(self, done: int, total: int) -> None: ...

    def milestone(self, milestone: Milestone) -> None: ...
