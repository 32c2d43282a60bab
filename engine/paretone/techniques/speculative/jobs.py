"""Training a draft as a job: see :class:`paretone.techniques.base.Job`."""

from __future__ import annotations

from paretone.techniques.base import JobTask
from paretone.techniques.speculative.training import Draft
from paretone.training.companions import train_companion
from paretone.training.reporting import Reporting, use_threads
from paretone.training.requests import Trained


def train(task: JobTask) -> Trained:
    """Do a :class:`paretone.techniques.speculative.requests.DraftRequest`."""
    use_threads(task.request)
    return train_companion(task.request, Draft.of(task.request), Reporting(task.observer))
