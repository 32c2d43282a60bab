"""Forms of trainings: knobs, requests, usual times and meanings of figures. Torch-free.

A technique's job names its form (:attr:`paretone.techniques.base.Job.form`); the panel Training draws it, and asks for
the job with what was filled in. So a plug-in's training needs no code of the window. Numbers are written with a point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paretone.models.base import ModelInfo
from paretone.models.catalogue import entry
from paretone.setting.knobs import Choice, Effect, Knob, Number, Values
from paretone.techniques.registry import named, techniques
from paretone.training.requests import TrainingRequest, usual_own_sentences
from paretone.wording import counted

LM_MINI_PARAMETERS = 10_100_000
"""Parameters of the bundled language model, by which times are estimated."""
TEACHER = "hibari-tts, the speech synthesiser that the bundled models learned from,"
"""Subject of a sentence on speech that is made to learn from."""
LONG_MINUTES = 240
"""Proposed times above this get an explanation."""


@dataclass(frozen=True)
class TrainingPlan:
    """The user's choices for a training."""

    training: str
    """The name of the :class:`TrainingForm`."""
    manifest: str
    work: str
    minutes: float
    half_precision: bool
    resume: bool
    knobs: Values
    """Knobs of the training."""
    rate_scale: float = 1.0
    """Factor on the usual learning rates."""


@dataclass(frozen=True)
class Place:
    """The model that is trained, as :class:`paretone.session.commands.LoadModel` names it."""

    model: str
    folder: str
    variant: str
    device: str
    vocoder: str = ""


@dataclass(frozen=True)
class Figure:
    """One figure of a validation, as a curve."""

    name: str
    """Its name in :class:`paretone.training.requests.TrainingProgress`."""
    title: str
    share: bool = True
    """Whether it is shown in per cent."""


@dataclass(frozen=True)
class TrainingOffer:
    """A training that would make a technique usable with its knobs, as Setup offers it."""

    knobs: Mapping[str, object]
    """Knobs of the training."""
    text: str
    """Text of the button."""
    tip: str
    estimate: str = ""
    """Estimated time, as a sentence."""


@dataclass(frozen=True)
class TrainingForm:
    """One training, as the panel shows it and the engine is asked for it."""

    name: str
    """Name of the technique that it is for."""
    title: str
    families: tuple[str, ...]
    intro: str
    knobs: tuple[Knob, ...]
    found: tuple[Figure, ...]
    """The figures of its validations that are drawn, at most three, the most telling one first."""
    progress: str
    """A sentence about a validation, with ``{step}`` and the words for its first figure, ``{found}``."""
    request: Callable[[Place, TrainingPlan], TrainingRequest]
    """Request to the technique called ``name``."""
    minutes: Callable[[ModelInfo], float]
    """Usual minutes on a processor."""
    folder: Callable[[str, Values], str]
    """A name for the work folder, of the model's name and the knobs."""
    fitting: Callable[[ModelInfo], Mapping[str, object]] = lambda info: {}
    """Values of its knobs that fit the model better than the defaults."""
    needs_manifest: bool = False
    """Whether recordings have to be given."""
    remark: Callable[[Values], str] = lambda knobs: ""
    """Remark on the knobs, as a sentence."""
    why_not: Callable[[ModelInfo], str] = lambda info: ""
    """Why a model of its families cannot be trained, as a sentence, or ``""``."""
    estimate: Callable[[ModelInfo, bool], str] = lambda info, spoken: ""
    """Estimated time, as a sentence, or ``""``; ``spoken``: whether the training speech can be synthesised."""
    ready: Callable[[Values], tuple[Mapping[str, object], str]] = lambda figures: ({}, "")
    """The technique's knobs for what was trained, of its figures, and a sentence that says what to do with it, or
    ``""``."""
    offer: Callable[[ModelInfo, Values], TrainingOffer | None] = lambda info, knobs: None
    """What Setup offers where the technique cannot run with its knobs, of the loaded model and these."""


def training_forms() -> tuple[TrainingForm, ...]:
    """The forms that techniques' jobs declare, in the order of the techniques."""
    return tuple(named(job.form) for one in techniques() for job in one.jobs if job.form)


def training_form(technique: str) -> TrainingForm | None:
    """The form for ``technique``, if it has one."""
    return next((one for one in training_forms() if one.name == technique), None)


def run_arguments(place: Place, plan: TrainingPlan) -> dict[str, Any]:
    """Arguments common to the requests of all trainings."""
    return {
        "model": place.model,
        "work": plan.work,
        "manifest": plan.manifest,
        "folder": place.folder,
        "minutes": plan.minutes,
        "resume": plan.resume,
        "half_precision": plan.half_precision,
        "rate_scale": plan.rate_scale,
        "device": place.device,
        "vocoder": place.vocoder,
    }


def fine_tuning_arguments(place: Place, plan: TrainingPlan) -> dict[str, Any]:
    """Arguments common to the requests of fine-tunings."""
    return {"variant": place.variant, "sentences": int(plan.knobs["sentences"]), **run_arguments(place, plan)}


def companion_arguments(place: Place, plan: TrainingPlan) -> dict[str, Any]:
    """Arguments common to the requests of drafts and students."""
    return {"sentences": int(plan.knobs["sentences"]), **run_arguments(place, plan)}


def minutes_by_size(minutes: float) -> Callable[[ModelInfo], float]:
    """``minutes`` of LM mini, and as much more as another model is larger."""
    return lambda info: max(minutes, round(minutes * info.parameters / LM_MINI_PARAMETERS))


def minutes_by_share(minutes: float, parameters: int) -> Callable[[ModelInfo], float]:
    """``minutes`` of a model with that number of ``parameters``; of others in proportion, as a step's work grows with
    their number."""
    return lambda info: max(1.0, round(minutes * info.parameters / parameters))


def method_knob(methods: Sequence[tuple[str, str, str]]) -> Choice:
    """The choice among methods of a training, each a name, a title and what it means; the first is the default."""
    return Choice(
        "method",
        "Method",
        " ".join(f"{title}: {meaning}" for _, title, meaning in methods),
        default=methods[0][0],
        values=tuple(name for name, _, _ in methods),
        titles=tuple(title for _, title, _ in methods),
        effect=Effect.AFTER_TRAINING,
    )


def knob_of(knobs: tuple[Knob, ...], name: str) -> Knob:
    return next(one for one in knobs if one.name == name)


def count_knob(name: str, title: str, meaning: str, default: int, most: int, least: int = 0) -> Number:
    """A whole number that matters from the next training on."""
    return Number(
        name,
        title,
        meaning,
        default=default,
        minimum=least,
        maximum=most,
        whole=True,
        effect=Effect.AFTER_TRAINING,
    )


SENTENCES = count_knob(
    "sentences",
    "Generated sentences",
    "Number of sentences per voice that the model generates as training speech; 0: only the manifest's recordings.",
    600,
    100_000,
)
"""Number of sentences that a model generates as training speech."""
OWN_SENTENCES = count_knob(
    "sentences",
    "Own sentences",
    "Number of sentences per voice that the model says itself as training speech, in addition to the manifest's "
    "recordings; 0: none.",
    0,
    100_000,
)
"""The same of models that can learn from other speech as well."""


def usual_sentences(info: ModelInfo) -> Mapping[str, object]:
    """Own sentences for those models that nobody else speaks for."""
    return {"sentences": usual_own_sentences(entry(info.id).bundled)}


def remark_on_sentences(knobs: Values) -> str:
    """That the model speaks first, as a sentence, or ``""``."""
    number = int(knobs["sentences"])
    return f"The model first says {counted(number, 'sentence', 'sentences')} in each voice itself." if number else ""


TOKEN_FIGURES = (
    Figure("same_first", "same top choice as the whole model"),
    Figure("correct", "predicts the spoken token"),
)
"""Validation figures of drafts and students."""


def lasting(minutes: float) -> str:
    return counted(round(minutes), "minute", "minutes") if minutes < 120 else f"{minutes / 60:.0f} hours"


def estimate_by_share(info: ModelInfo, usual: float, judged_by: str) -> str:
    """A sentence on a usual time that was estimated by :func:`minutes_by_share`."""
    return f"{info.title} takes about {lasting(usual)} of one CPU core, judging by {judged_by}; a GPU is far faster."


def scaled_estimate(info: ModelInfo, usual: float) -> str:
    """A sentence that explains a usual time that is long, or ``""``."""
    if usual <= LONG_MINUTES:
        return ""
    return (
        f"Estimate, scaled from LM mini by the size of {info.title}: {lasting(usual)} of one CPU core. A GPU is far "
        "faster."
    )
