"""Training average velocities as a job: see :class:`engine.techniques.base.Job`."""

from __future__ import annotations

from engine.techniques.average_velocity.fine_tuning import fine_tune
from engine.techniques.base import JobTask
from engine.training.reporting import Reporting, use_threads
from engine.training.requests import Trained


def train(task: JobTask) -> Trained:
    """Do a :class:`engine.techniques.average_velocity.requests.AverageVelocityRequest`."""
    use_threads(task.request)
    return fine_tune(task.request, Reporting(task.observer))
