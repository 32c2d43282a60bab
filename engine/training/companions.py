"""Training a smaller companion of a language model as a job: a draft, a student."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.techniques.base import JobObserver
from engine.techniques.spade.recipe import StudentOptions
from engine.techniques.speculative.recipe import DraftOptions
from engine.training.language_training import LanguageTraining, train_language
from engine.training.reporting import Reporting, run_of
from engine.training.requests import CompanionRequest, Trained


def train_companion(
    request: CompanionRequest, options: DraftOptions | StudentOptions, observer: JobObserver, **more: Any
) -> Trained:
    """Train under ``options``; ``more`` are further fields of the training. Raises :class:`PlainError`, and
    :class:`Cancelled` with a checkpoint left behind."""
    job = LanguageTraining(
        model=request.model,
        options=options,
        sentences=request.sentences,
        manifest=Path(request.manifest) if request.manifest else None,
        rate=request.rate,
        matrix_rate=request.matrix_rate,
        folder=request.folder,
        **more,
        **run_of(request),
    )
    done = train_language(job, Reporting(observer))
    return Trained(str(done.checkpoint), done.summary, done.figures, done.steps, done.seconds, done.validation)
