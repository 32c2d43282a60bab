"""Trainings as jobs: from a request to what all trainings take, and from their milestones to reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from engine import device
from engine.techniques.base import JobObserver
from engine.training.requests import TrainingProgress, TrainingRequest
from engine.training.session import Budget, Milestone


def run_of(request: TrainingRequest) -> dict[str, Any]:
    """Where and for how long: what all trainings have in common. The processor's threads are set as well."""
    torch.set_num_threads(request.threads or device.thread_count())
    return {
        "work": Path(request.work),
        "budget": Budget(request.minutes, request.steps),
        "device": request.device,
        "resume": request.resume,
        "export": Path(request.export) if request.export else None,
    }


def manner_of(request: TrainingRequest) -> dict[str, Any]:
    """How all of them compute and learn."""
    return {"half_precision": request.half_precision, "rate_scale": request.rate_scale}


class Reporting:
    """Reports a training's milestones; see :class:`engine.training.follower.Follower`."""

    def __init__(self, observer: JobObserver) -> None:
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
