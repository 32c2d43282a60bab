"""Trainings as jobs: the threads that they may use, and their milestones as reports."""

from __future__ import annotations

import torch

from paretone import device
from paretone.observer import Observer, Passing
from paretone.training.follower import Follower
from paretone.training.requests import TrainingProgress, TrainingRequest
from paretone.training.session import Milestone


def use_threads(request: TrainingRequest) -> None:
    """Set the thread count to that of ``request``."""
    torch.set_num_threads(request.threads or device.thread_count())


class Reporting(Passing, Follower):
    """Reports a training's milestones."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer, "status", "progress")
        self._observer = observer

    def milestone(self, milestone: Milestone) -> None:
        self._observer.report(
            "training",
            TrainingProgress(
                milestone.step,
                milestone.share,
                milestone.seconds,
                milestone.seconds_left,
                dict(milestone.losses),
                dict(milestone.validation),
            ),
        )
