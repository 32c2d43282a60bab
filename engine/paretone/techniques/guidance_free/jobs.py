"""Training CFG-free weights as a job: see :class:`paretone.techniques.base.Job`."""

from __future__ import annotations

from paretone.techniques.base import JobTask
from paretone.techniques.guidance_free.fine_tuning import fine_tune, options_of
from paretone.training.reporting import Reporting, use_threads
from paretone.training.requests import Trained


def train(task: JobTask) -> Trained:
    """Do a :class:`paretone.techniques.guidance_free.requests.GuidanceFreeRequest`."""
    use_threads(task.request)
    return fine_tune(task.request, options_of(task.request), Reporting(task.observer))
