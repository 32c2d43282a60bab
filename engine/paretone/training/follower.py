"""Receives the progress of a training."""

from __future__ import annotations

from paretone.observer import Observer
from paretone.training.session import Milestone


class Follower(Observer):
    """Follower of a training; its progress is that of preparing speech. This one shows nothing."""

    def milestone(self, milestone: Milestone) -> None:
        """Called after every step and validation."""
