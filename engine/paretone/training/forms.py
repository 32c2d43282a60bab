"""Training forms: knobs, requests, default times and labels of figures. Torch-free.

A technique's job names its form (:attr:`paretone.techniques.base.Job.form`); the Training panel draws the form and
requests the job with its values. A plug-in's training therefore needs no window code. Decimal separator: a point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paretone.models.base import LANGUAGE, MelFlow, ModelInfo
from paretone.models.catalogue import entry
from paretone.setting.knobs import Choice, Effect, Knob, Number, Values, count
from paretone.setting.plan import named
from paretone.techniques.registry import technique, techniques
from paretone.training.requests import TrainingRequest, usual_own_sentences
from paretone.wording import counted

LM_MINI_PARAMETERS = 10_100_000
"""Parameters of the bundled language model, the reference for time estimates."""
TEACHER = "hibari-tts, the speech synthesiser that the bundled models learned from,"
"""Subject of sentences about the training speech."""
LONG_MINUTES = 240


@dataclass(frozen=True)
class TrainingPlan:
    training: str
    manifest: str
    work: str
    minutes: float
    half_precision: bool
    resume: bool
    knobs: Values
    rate_scale: float = 1.0
    epochs: float = 0.0
    """Budget in place of the minutes; 0: the minutes."""
    validation: str = ""
    validation_audio: str = ""
    """As in :class:`paretone.training.requests.TrainingRequest`."""


@dataclass(frozen=True)
class Place:
    """Model to train, as :class:`paretone.session.commands.LoadModel` names it."""

    model: str
    folder: str
    variant: str
    device: str
    vocoder: str = ""


@dataclass(frozen=True)
class Figure:
    name: str
    """Name in :class:`paretone.training.requests.TrainingProgress`."""
    title: str
    share: bool = True


@dataclass(frozen=True)
class TrainingOffer:
    """Training, offered in Setup, that would enable a technique with its present knobs."""

    knobs: Mapping[str, object]
    text: str
    tip: str
    estimate: str = ""


@dataclass(frozen=True)
class TrainingForm:
    """Description of a training for the panel and for requests to the engine."""

    name: str
    title: str
    families: tuple[str, ...]
    intro: str
    knobs: tuple[Knob, ...]
    found: tuple[Figure, ...]
    """Validation figures to draw, at most three, the most informative first."""
    progress: str
    """Sentence about a validation, with ``{step}`` and the label of its first figure, ``{found}``."""
    request: Callable[[Place, TrainingPlan], TrainingRequest]
    """Makes the request for the technique ``name``."""
    minutes: Callable[[ModelInfo], float]
    folder: Callable[[str, Values], str]
    """Makes the name of the work folder from the model's name and the knobs."""
    fitting: Callable[[ModelInfo], Mapping[str, object]] = lambda info: {}
    """Knob values that suit the model better than the defaults."""
    needs_manifest: bool = False
    remark: Callable[[Values], str] = lambda knobs: ""
    why_not: Callable[[ModelInfo], str] = lambda info: ""
    """Reason why a model of its families cannot be trained, as a sentence, or ``""``."""
    estimate: Callable[[ModelInfo, bool], str] = lambda info, spoken: ""
    """Estimated time, as a sentence, or ``""``; ``spoken``: whether the corpus is synthesised first."""
    ready: Callable[[Values], tuple[Mapping[str, object], str]] = lambda figures: ({}, "")
    """From the result's figures to the technique's knobs and a sentence on how to use it, or ``""``."""
    offer: Callable[[ModelInfo, Values], TrainingOffer | None] = lambda info, knobs: None
    """Offer in Setup for the loaded model and the technique's knobs, if the technique cannot run with them."""


def training_forms() -> tuple[TrainingForm, ...]:
    """Forms declared by the techniques' jobs, in the order of the techniques."""
    return tuple(named(job.form) for one in techniques() for job in one.jobs if job.form)


def training_form(technique: str) -> TrainingForm | None:
    return next((one for one in training_forms() if one.name == technique), None)


def forms_for(family: str, mel_flow: MelFlow | None) -> list[TrainingForm]:
    """Trainings for models of ``family``, first those that name it first; ``mel_flow``: a language model's flow."""
    found = [
        one
        for one in training_forms()
        if family in one.families
        and (family != LANGUAGE or not technique(one.name).of_mel_flow or technique(one.name).runs_on(mel_flow))
    ]
    return sorted(found, key=lambda one: one.families.index(family))


def companion_arguments(place: Place, plan: TrainingPlan) -> dict[str, Any]:
    return {
        "sentences": int(plan.knobs["sentences"]),
        "model": place.model,
        "work": plan.work,
        "manifest": plan.manifest,
        "validation": plan.validation,
        "validation_audio": plan.validation_audio,
        "folder": place.folder,
        **({"epochs": plan.epochs} if plan.epochs else {"minutes": plan.minutes}),
        "resume": plan.resume,
        "half_precision": plan.half_precision,
        "rate_scale": plan.rate_scale,
        "device": place.device,
        "vocoder": place.vocoder,
    }


def fine_tuning_arguments(place: Place, plan: TrainingPlan) -> dict[str, Any]:
    return {"variant": place.variant, **companion_arguments(place, plan)}


def minutes_by_size(minutes: float) -> Callable[[ModelInfo], float]:
    """``minutes`` for LM mini, scaled up by the size of a larger model."""
    return lambda info: max(minutes, round(minutes * info.parameters / LM_MINI_PARAMETERS))


def minutes_by_share(minutes: float, parameters: int) -> Callable[[ModelInfo], float]:
    """``minutes`` for a model of ``parameters``, scaled by the number of parameters, as a step's work is."""
    return lambda info: max(1.0, round(minutes * info.parameters / parameters))


def method_knob(methods: Sequence[tuple[str, str, str]]) -> Choice:
    """Choice of a training method from (name, title, meaning); the first is the default."""
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


def count_knob(name: str, title: str, meaning: str, default: int, most: int, least: int = 0, unit: str = "") -> Number:
    """Whole-number knob; a change takes effect at the next training."""
    return count(name, title, meaning, default, (least, most), unit=unit, effect=Effect.AFTER_TRAINING)


SENTENCES = count_knob(
    "sentences",
    "Generated sentences",
    "Number of sentences per voice that the model generates as training speech; 0: only the manifest's recordings.",
    600,
    100_000,
)
OWN_SENTENCES = count_knob(
    "sentences",
    "Own sentences",
    "Number of sentences per voice that the model says itself as training speech, in addition to the manifest's "
    "recordings; 0: none.",
    0,
    100_000,
)
"""Likewise for models that can also learn from other speech."""


def usual_sentences(info: ModelInfo) -> Mapping[str, object]:
    """Own sentences for models without synthesised training speech."""
    return {"sentences": usual_own_sentences(entry(info.id).bundled)}


def remark_on_sentences(knobs: Values) -> str:
    """Sentence that the model speaks first, or ``""``."""
    number = int(knobs["sentences"])
    return f"The model first says {counted(number, 'sentence', 'sentences')} in each voice itself." if number else ""


TOKEN_FIGURES = (
    Figure("same_first", "same top choice as the whole model"),
    Figure("correct", "predicts the spoken token"),
)


def lasting(minutes: float) -> str:
    return counted(round(minutes), "minute", "minutes") if minutes < 120 else f"{minutes / 60:.0f} hours"


def estimate_by_share(info: ModelInfo, usual: float, judged_by: str) -> str:
    return f"{info.title} takes about {lasting(usual)} of one CPU core, judging by {judged_by}; a GPU is far faster."


def scaled_estimate(info: ModelInfo, usual: float) -> str:
    """Sentence that explains a long default time, or ``""``."""
    if usual <= LONG_MINUTES:
        return ""
    return (
        f"Estimate, scaled from LM mini by the size of {info.title}: {lasting(usual)} of one CPU core. A GPU is far "
        "faster."
    )
