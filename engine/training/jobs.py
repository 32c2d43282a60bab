"""The engine's training jobs: from each command to its training, and from what came of it to the event that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from engine import device
from engine.session.messages import (
    TrainBundledModel,
    TrainDraft,
    TrainGuidanceFree,
    Training,
    TrainingDone,
    TrainStudent,
)
from engine.setting.knobs import NO_VALUES
from engine.techniques import guidance_free, spade, speculative
from engine.techniques.guidance_free.fine_tuning import fine_tune, options_of
from engine.techniques.guidance_free.requests import GuidanceFreeRequest
from engine.techniques.spade.requests import StudentRequest
from engine.techniques.spade.training import Student
from engine.techniques.speculative.requests import DraftRequest
from engine.techniques.speculative.training import Draft
from engine.training.companions import train_companion
from engine.training.follower import Follower
from engine.training.recipes.bundled_training import BundledTraining, train_bundled
from engine.training.requests import Trained
from engine.training.session import Budget

USES = {
    "lm-mini": "To hear it, load LM mini from {folder}.",
    "speech-tokenizer": "For a language model that speaks through it, its folder is {folder}.",
}
"""What bundled models are for, by their recipe, where that needs saying."""


def train(command: Training, observer: Follower) -> TrainingDone:
    """Do what ``command`` says. Raises :class:`PlainError`, and :class:`Cancelled` with a checkpoint left behind."""
    match command:
        case TrainGuidanceFree():
            return _guidance_free(command, observer)
        case TrainDraft() | TrainStudent():
            return _language(command, observer)
        case TrainBundledModel():
            return _bundled(command, observer)


def _guidance_free(command: TrainGuidanceFree, observer: Follower) -> TrainingDone:
    request = GuidanceFreeRequest(
        weight=command.weight,
        method=command.method,
        variant=command.variant,
        learning_rate=command.learning_rate,
        **_asked(command),
    )
    return _done(command, guidance_free.NAME, fine_tune(request, options_of(request), observer))


def _language(command: TrainDraft | TrainStudent, observer: Follower) -> TrainingDone:
    asked = {"sentences": command.sentences, **_asked(command)}
    if isinstance(command, TrainStudent):
        student = StudentRequest(depth=command.depth, retained=command.retained, stages=command.stages, **asked)
        return _done(command, spade.NAME, train_companion(student, Student.of(student), observer))
    draft = DraftRequest(lower=command.lower, upper=command.upper, **asked)
    return _done(command, speculative.NAME, train_companion(draft, Draft.of(draft), observer))


def _asked(command: TrainGuidanceFree | TrainDraft | TrainStudent) -> dict[str, Any]:
    names = ("model", "manifest", "folder", "work", "minutes", "steps", "resume", "device")
    return {name: getattr(command, name) for name in names} | _manner(command)


def _done(command: Training, technique: str, made: Trained) -> TrainingDone:
    return TrainingDone(
        command.job,
        made.checkpoint,
        technique,
        made.summary,
        made.figures,
        made.steps,
        made.seconds,
        dict(made.validation),
    )


def _bundled(command: TrainBundledModel, observer: Follower) -> TrainingDone:
    torch.set_num_threads(command.threads or device.thread_count())
    job = BundledTraining(
        recipe=command.recipe,
        initial=_path(command.initial),
        export=_path(command.export),
        sentences=command.sentences,
        corpus=_path(command.corpus),
        codec=_path(command.codec),
        **_manner(command),
        work=Path(command.work),
        budget=Budget(command.minutes, command.steps),
        device=command.device,
        resume=command.resume,
    )
    made = train_bundled(job, observer)
    use = USES.get(command.recipe, "").format(folder=made.folder)
    summary = f"{command.recipe} was made in {made.steps} steps. {use}".strip()
    return TrainingDone(
        command.job, str(made.folder), "", summary, NO_VALUES, made.steps, made.seconds, made.validation
    )


def _manner(command: Training) -> dict[str, Any]:
    """How all of them compute and learn."""
    return {"half_precision": command.half_precision, "rate_scale": command.rate_scale}


def _path(named: str) -> Path | None:
    return Path(named) if named else None
