"""Trainings as jobs: the threads that they may use, and their milestones as reports."""

from __future__ import annotations

import torch

from paretone import device
from paretone.techniques.base import ReportObserver
from paretone.training.requests import TrainingProgress, TrainingRequest
from paretone.training.session import Milestone


def use_threads(request: TrainingRequest) -> None:
    """Set the thread count to that of ``request``."""
    torch.set_num_threads(request.threads or device.thread_count())


class Reporting:
    """Reports a training's milestones; see :class:`paretone.training.follower.Follower`."""

    def __init__(self, observer: ReportObserver) -> None:
        self.check = observer.check
        self.status = observer.status
        self._observer = observer

    def progress(self, done: int, total: int) -> None:
        """Tell how much speech is prepared."""
        self._observer.progress(done, total)

    def milestone(self, milestone: Milestone) -> None:
        """Report a step or a validation."""
        self._observer.report(
            TrainingProgress(
                milestone.step,
                milestone.share,
                milestone.seconds,
                milestone.seconds_left,
                dict(milestone.losses),
                dict(milestone.validation),
            )
        )
