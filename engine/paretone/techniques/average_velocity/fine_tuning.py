"""Fine-tuning a model of the catalogue, from its checkpoint to a file that the engine finds again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from paretone.errors import TrainingError
from paretone.models.catalogue import F5, CatalogueEntry, entry
from paretone.models.cosyvoice2.config import FlowConfig
from paretone.models.files.checkpoints import fingerprint, metadata_of, read_float_weights
from paretone.models.files.trained_weights import described_interval, plain_names, user_folder
from paretone.setting.knobs import Values, checked
from paretone.techniques.average_velocity import AverageVelocityRequest, why_not_trained
from paretone.techniques.average_velocity.f5 import F5Subject
from paretone.techniques.average_velocity.recipe import AverageVelocity, AverageVelocityOptions
from paretone.techniques.average_velocity.subjects import Subject
from paretone.techniques.base import JobTask
from paretone.training.f5_checkpoints import diffusion_transformer, guided_checkpoint, speech_to_learn
from paretone.training.learner import SMALL_PARAMETERS
from paretone.training.natural_corpus import CorpusOptions
from paretone.training.optimisers import Rates
from paretone.training.processes import Processes
from paretone.training.requests import Follower, Trained
from paretone.training.runs import Reporting, begin, complete, use_threads
from paretone.training.session import Intervals, TrainingSession
from paretone.wording import listed, percent

SMALL_RATES, USUAL_RATES = Rates(0.006, 4e-4), Rates(None, 1e-5)
"""Learning rates: measured on the bundled model; the official one for fine-tuning the released ones."""
INTERVALS = Intervals(log_steps=10, validation_steps=200, validates_first=True)
MEL_SWAY = -1.0
"""Of the official grid of CosyVoice 2's flow, 1 − cos(π/2·t)."""
GUIDANCE = ("guidance", "intelligibility", "similarity")
"""Options that are guidance, of all models."""


def fine_tune(
    request: AverageVelocityRequest,
    follower: Follower,
    intervals: Intervals = INTERVALS,
    corpus: CorpusOptions = CorpusOptions(),
) -> Trained:
    """Train, and export the result. A bundled model that is given no speech learns from the kind that it learnt from
    before: from ``corpus``.

    Raises :class:`paretone.errors.PlainError`, and :class:`Cancelled` once a checkpoint of what was done is written.
    """
    chosen = entry(request.model)
    if reason := why_not_trained(chosen):
        raise TrainingError(reason)
    options = options_of(request, chosen)
    processes, follower = begin(request, chosen, follower)
    subject, base = _subject(request, chosen, options.guidance, corpus, processes, follower)
    rates = rates_of(request, subject)
    options = replace(options, learning_rate=rates.others, matrix_rate=rates.matrices)
    initial = None if not request.initial else initial_weights(Path(request.initial), base)
    recipe = AverageVelocity(subject, base, processes, options, initial)
    folder = user_folder(request.model)
    session, target = complete(recipe, request, folder, intervals, processes, follower)
    return _trained(options, target, session, processes.is_first)


def initial_weights(path: Path, base: str) -> Mapping[str, Tensor]:
    """The weights in ``path`` by the backbone's own names. Raises :class:`PlainError` if they are no such weights, or
    were made from another checkpoint than the one with the fingerprint ``base``."""
    told = metadata_of(path)
    if described_interval(told, str(path), "") is None:
        raise TrainingError(f"{path} holds no weights of average velocity; choose a file that this training wrote.")
    if told.get("base") != base:
        raise TrainingError(f"{path} was made from another checkpoint; start from weights of the one that is trained.")
    return plain_names(read_float_weights(path))


def options_of(request: AverageVelocityRequest, chosen: CatalogueEntry) -> AverageVelocityOptions:
    """Training options of ``request`` for a model. Raises :class:`SettingError`."""
    usual, sway = _usual(chosen)
    unknown = [name for name in request.guidance if name not in usual]
    if unknown:
        raise TrainingError(f"{chosen.title} is not guided by {unknown[0]}; its guidance is {listed(sorted(usual))}.")
    known = [one for one in chosen.options if one.name in usual]
    values = checked(known, {**usual, **request.guidance}, chosen.title) if known else {**usual, **request.guidance}
    return AverageVelocityOptions(
        Values({name: float(values[name]) for name in usual}),
        request.method,
        sway=sway,
        teacher_steps=request.teacher_steps,
        single_share=request.single_share,
        temperature=request.temperature,
        uses=request.uses,
        seed=request.seed,
        half_precision=request.half_precision,
        rate_scale=request.rate_scale,
    )


def _usual(chosen: CatalogueEntry) -> tuple[dict[str, float], float]:
    """Its guidance, and the sway of its grid."""
    if chosen.mel_steps:  # Those of the flow after the tokens are no options of the model.
        return {"guidance": FlowConfig().guidance}, MEL_SWAY
    known = checked(chosen.options, chosen.default_options, chosen.title)
    return {name: float(known[name]) for name in GUIDANCE if name in known}, float(known["sway"])


def _subject(
    request: AverageVelocityRequest,
    chosen: CatalogueEntry,
    guidance: Values,
    corpus: CorpusOptions,
    processes: Processes,
    follower: Follower,
) -> tuple[Subject, str]:
    """The model with its speech, and the fingerprint of its checkpoint."""
    seed = request.seed + 1_000_003 * processes.number  # Every process draws for itself.
    if chosen.mel_steps:
        from paretone.techniques.average_velocity.cosyvoice2 import cosyvoice2_subject

        return cosyvoice2_subject(request, chosen, processes, follower, seed)
    if chosen.kind != F5:
        from paretone.techniques.average_velocity.megatts3 import megatts3_subject

        return megatts3_subject(request, chosen, guidance, corpus, processes, follower, seed)
    checkpoint = guided_checkpoint(chosen, request.folder, request.variant, follower.check)
    strength = float(guidance["guidance"])
    examples = speech_to_learn(request, chosen, checkpoint, strength, corpus, processes, follower)
    model = diffusion_transformer(checkpoint)
    return F5Subject(model, examples, request.frames, seed), fingerprint(checkpoint.path, follower.check)


def rates_of(request: AverageVelocityRequest, subject: Subject) -> Rates:
    """The learning rates that were asked for, or the usual ones of a model of this size."""
    parameters = sum(one.numel() for one in subject.model.parameters())
    usual = SMALL_RATES if parameters < SMALL_PARAMETERS else USUAL_RATES
    return usual.unless_asked(request.learning_rate, request.matrix_rate)


def _trained(options: AverageVelocityOptions, target: Path, session: TrainingSession, is_first: bool) -> Trained:
    validation = session.validation
    summary = "One to four evaluations"
    if is_first:  # The others have validated nothing.
        summary += f" end at {percent(validation['left'])} of the squared distance of as many without training"
    figures = Values({**options.guidance, "method": options.method})
    return Trained(str(target), summary + ".", figures, session.number, session.seconds, validation, is_first)


def train(task: JobTask) -> Trained:
    """Do a :class:`paretone.techniques.average_velocity.AverageVelocityRequest`."""
    use_threads(task.request)
    return fine_tune(task.request, Reporting(task.observer))
