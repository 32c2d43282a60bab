"""Fine-tuning a model of the catalogue, from its checkpoint to a file that the engine finds again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paretone.errors import TrainingError
from paretone.models.catalogue import F5, entry
from paretone.models.f5.checkpoint import F5Checkpoint
from paretone.models.files.trained_weights import WEIGHT_SETS
from paretone.paths import own_place
from paretone.setting.knobs import Values
from paretone.techniques.base import JobTask
from paretone.techniques.guidance_free import GuidanceFreeRequest
from paretone.techniques.guidance_free.recipe import GuidanceFree, GuidanceFreeOptions, equivalent_guidance
from paretone.training.f5_checkpoints import guided_checkpoint, speech_to_learn
from paretone.training.learner import SMALL_PARAMETERS
from paretone.training.natural_corpus import CorpusOptions
from paretone.training.requests import Follower, Trained
from paretone.training.runs import Reporting, begin, complete, use_threads
from paretone.training.session import Intervals, TrainingSession
from paretone.wording import percent

SMALL_RATE, USUAL_RATE = 3e-4, 1e-5
"""Learning rates: measured on the bundled model; the official one for fine-tuning the released ones."""
INTERVALS = Intervals(validation_steps=100, validates_first=True)


def guidance_free_folder(model: str) -> Path:
    """Folder of CFG-free checkpoints that the user trained."""
    return own_place(model) / WEIGHT_SETS


def options_of(request: GuidanceFreeRequest) -> GuidanceFreeOptions:
    """Training options of ``request``; the learning rate may depend on the model. Raises :class:`SettingError`."""
    return GuidanceFreeOptions(
        request.weight,
        request.method,
        matrix_rate=request.matrix_rate,
        frames=request.frames,
        weight_warm_up=request.weight_warm_up,
        latest=request.latest,
        average_difference=request.average_difference,
        seed=request.seed,
        half_precision=request.half_precision,
        rate_scale=request.rate_scale,
    )


def fine_tune(
    request: GuidanceFreeRequest,
    options: GuidanceFreeOptions,
    follower: Follower,
    intervals: Intervals = INTERVALS,
    corpus: CorpusOptions = CorpusOptions(),
) -> Trained:
    """Train under ``options``, and export the result. A bundled model that is given no speech learns from what it
    learnt from before: from ``corpus``.

    Raises :class:`paretone.errors.PlainError`, and :class:`Cancelled` once a checkpoint of what was done is written.
    """
    chosen = entry(request.model)
    if chosen.kind != F5:
        raise TrainingError(f"{chosen.title} cannot be trained here, only F5-TTS.")
    processes, follower = begin(request, chosen, follower)
    checkpoint = guided_checkpoint(chosen, request.folder, request.variant, follower.check)
    guidance = equivalent_guidance(options.weight)
    examples = speech_to_learn(request, chosen, checkpoint, guidance, corpus, processes, follower)
    recipe = GuidanceFree(checkpoint, examples, processes, replace(options, learning_rate=_rate(request, checkpoint)))
    folder = guidance_free_folder(request.model)
    session, target = complete(recipe, request, folder, intervals, processes, follower)
    return _trained(options, target, session, processes.is_first)


def _trained(options: GuidanceFreeOptions, target: Path, session: TrainingSession, is_first: bool) -> Trained:
    strength, validation = equivalent_guidance(options.weight), session.validation
    summary = f"w = {options.weight:.2f} equals guidance {strength:.2f}"
    if is_first:  # The others have validated nothing.
        summary += f"; one branch has learned {percent(validation['learnt'])} of it."
    figures = Values(weight=options.weight, equivalent_guidance=strength, method=options.method)
    return Trained(str(target), summary, figures, session.number, session.seconds, validation, is_first)


def _rate(request: GuidanceFreeRequest, checkpoint: F5Checkpoint) -> float:
    """The learning rate that was asked for, or the usual one of a model of this size."""
    if request.learning_rate is not None:
        return request.learning_rate
    parameters = sum(value.numel() for value in checkpoint.weights.values())
    return SMALL_RATE if parameters < SMALL_PARAMETERS else USUAL_RATE


def train(task: JobTask) -> Trained:
    """Do a :class:`paretone.techniques.guidance_free.GuidanceFreeRequest`."""
    use_threads(task.request)
    return fine_tune(task.request, options_of(task.request), Reporting(task.observer))
