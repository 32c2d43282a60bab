"""Training average velocities as a job: see :class:`paretone.techniques.base.Job`."""

from __future__ import annotations

from paretone.techniques.average_velocity.fine_tuning import fine_tune
from paretone.techniques.base import JobTask
from paretone.training.reporting import Reporting, use_threads
from paretone.training.requests import Trained


def train(task: JobTask) -> Trained:
    """Do a :class:`paretone.techniques.average_velocity.requests.AverageVelocityRequest`."""
    use_threads(task.request)
    return fine_tune(task.request, Reporting(task.observer))
