"""Receives the progress of a training. Torch-free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paretone.observer import Observer

if TYPE_CHECKING:
    from paretone.training.session import Milestone


class Follower(Observer):
    """Follower of a training; its progress is that of preparing speech. This one shows nothing."""

    def milestone(self, milestone: Milestone) -> None:
        """Called after every step and validation."""
