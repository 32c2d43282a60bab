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
from engine.setting.knobs import NO_VALUES, Values
from engine.techniques import guidance_free, spade, speculative
from engine.techniques.guidance_free.fine_tuning import FineTuning, fine_tune
from engine.techniques.guidance_free.recipe import GuidanceFreeOptions, equivalent_guidance
from engine.techniques.spade.recipe import StudentOptions
from engine.techniques.speculative.recipe import DraftOptions
from engine.training.follower import Follower
from engine.training.language_training import LanguageTraining, train_language
from engine.training.recipes.bundled_training import BundledTraining, train_bundled
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
    job = FineTuning(
        model=command.model,
        manifest=_path(command.manifest),
        options=GuidanceFreeOptions(command.weight, command.method, **_manner(command)),
        learning_rate=command.learning_rate,
        folder=command.folder,
        variant=command.variant,
        **_run(command),
    )
    tuned = fine_tune(job, observer)
    strength = equivalent_guidance(command.weight)
    return TrainingDone(
        command.job,
        str(tuned.checkpoint),
        guidance_free.NAME,
        f"w = {command.weight:.2f} stands for guidance {strength:.2f}; one branch has taken on "
        f"{tuned.validation['learnt']:.0%} of it.",
        Values(weight=command.weight, equivalent_guidance=strength, method=command.method),
        tuned.steps,
        tuned.seconds,
        tuned.validation,
    )


def _language(command: TrainDraft | TrainStudent, observer: Follower) -> TrainingDone:
    if isinstance(command, TrainStudent):
        technique = spade.NAME
        options = StudentOptions(**_manner(command), retained=command.retained)
        learning = {"depth": command.depth, "stages": command.stages}
    else:
        technique, learning = speculative.NAME, {}
        options = DraftOptions(**_manner(command), lower=command.lower, upper=command.upper)
    job = LanguageTraining(
        model=command.model,
        options=options,
        sentences=command.sentences,
        manifest=_path(command.manifest),
        folder=command.folder,
        **learning,
        **_run(command),
    )
    trained = train_language(job, observer)
    return TrainingDone(
        command.job,
        str(trained.checkpoint),
        technique,
        trained.summary,
        trained.figures,
        trained.steps,
        trained.seconds,
        trained.validation,
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
        **_run(command),
    )
    made = train_bundled(job, observer)
    use = USES.get(command.recipe, "").format(folder=made.folder)
    summary = f"{command.recipe} was made in {made.steps} steps. {use}".strip()
    return TrainingDone(
        command.job, str(made.folder), "", summary, NO_VALUES, made.steps, made.seconds, made.validation
    )


def _run(command: TrainGuidanceFree | TrainDraft | TrainStudent | TrainBundledModel) -> dict[str, Any]:
    """Where and for how long: what all trainings have in common."""
    return {
        "work": Path(command.work),
        "budget": Budget(command.minutes, command.steps),
        "device": command.device,
        "resume": command.resume,
    }


def _manner(command: Training) -> dict[str, Any]:
    """How all of them compute and learn."""
    return {"half_precision": command.half_precision, "rate_scale": command.rate_scale}


def _path(named: str) -> Path | None:
    return Path(named) if named else None
