"""Making bundled models."""

from __future__ import annotations

from pathlib import Path

from engine.session.executor import Executor
from engine.session.messages import Prepared, TrainModel
from engine.session.observers import Job, PreparationObserver
from engine.setting.knobs import NO_VALUES
from engine.training.recipes.bundled_training import BundledTraining, train_bundled
from engine.training.reporting import Reporting, use_threads
from engine.training.requests import Trained
from engine.training.session import Budget

USES = {
    "lm-mini": "To hear it, load LM mini from {folder}.",
    "speech-tokenizer": "For a language model that speaks through it, its folder is {folder}.",
}
"""What bundled models are for, by their recipe, where that needs saying."""


def train_model(command: TrainModel, executor: Executor, job: Job) -> Prepared:
    """Make a model, and say where it lies."""
    request = command.request
    use_threads(request)
    wanted = BundledTraining(
        recipe=request.model,
        work=Path(request.work),
        budget=Budget(request.minutes, request.steps),
        sentences=request.sentences,
        corpus=_path(request.corpus),
        codec=_path(request.codec),
        initial=_path(request.initial),
        half_precision=request.half_precision,
        rate_scale=request.rate_scale,
        device=request.device,
        resume=request.resume,
        export=_path(request.export),
    )
    made = train_bundled(wanted, Reporting(PreparationObserver(job, "", "Preparing speech")))
    use = USES.get(request.model, "").format(folder=made.folder)
    summary = f"{request.model} was made in {made.steps} steps. {use}".strip()
    trained = Trained(str(made.folder), summary, NO_VALUES, made.steps, made.seconds, made.validation)
    return Prepared(command.job, "", trained)


def _path(named: str) -> Path | None:
    return Path(named) if named else None
