"""Training CFG-free weights as a job: see :class:`engine.techniques.base.Job`."""

from __future__ import annotations

from engine.techniques.base import JobTask
from engine.techniques.guidance_free.fine_tuning import fine_tune, options_of
from engine.training.reporting import Reporting, use_threads
from engine.training.requests import Trained


def train(task: JobTask) -> Trained:
    """Do a :class:`engine.techniques.guidance_free.requests.GuidanceFreeRequest`."""
    use_threads(task.request)
    return fine_tune(task.request, options_of(task.request), Reporting(task.observer))
