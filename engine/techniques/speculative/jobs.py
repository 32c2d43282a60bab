"""Training a draft as a job: see :class:`engine.techniques.base.Job`."""

from __future__ import annotations

from pathlib import Path

from engine.techniques.base import JobTask
from engine.techniques.speculative.recipe import DraftOptions
from engine.training.companions import train_companion
from engine.training.requests import Trained


def train(task: JobTask) -> Trained:
    """Do a :class:`engine.techniques.speculative.requests.DraftRequest`."""
    request = task.request
    options = DraftOptions(
        **request.token_options,
        lower=request.lower,
        upper=request.upper,
        spoken_share=request.spoken_share,
        overlap_share=request.overlap_share,
    )
    initial = Path(request.initial) if request.initial else None
    return train_companion(request, options, task.observer, initial=initial)
