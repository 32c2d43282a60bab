"""Training a draft as a job: see :class:`engine.techniques.base.Job`."""

from __future__ import annotations

from engine.techniques.base import JobTask
from engine.techniques.speculative.training import Draft
from engine.training.companions import train_companion
from engine.training.reporting import Reporting, use_threads
from engine.training.requests import Trained


def train(task: JobTask) -> Trained:
    """Do a :class:`engine.techniques.speculative.requests.DraftRequest`."""
    use_threads(task.request)
    return train_companion(task.request, Draft.of(task.request), Reporting(task.observer))
