"""Training weights for few evaluations, as the panel Training offers it. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paretone.models.base import ModelInfo
from paretone.models.catalogue import entry
from paretone.setting.knobs import Values
from paretone.techniques.average_velocity import (
    FEWEST_STEPS,
    TEACHER_STEPS,
    TECHNIQUE,
    AverageVelocityRequest,
    why_not_trained,
)
from paretone.training.forms import (
    OWN_SENTENCES,
    TEACHER,
    Figure,
    Place,
    TrainingForm,
    TrainingOffer,
    TrainingPlan,
    count_knob,
    estimate_by_share,
    fine_tuning_arguments,
    method_knob,
    minutes_by_share,
    remark_on_sentences,
    usual_sentences,
)

METHODS = (
    (
        "displacement",
        "Displacement (IntMeanFlow)",
        "The target is how far the frozen model goes in a few guided steps.",
    ),
    ("mean-flow", "MeanFlow", "Learns from speech alone, in full precision; less stable."),
)
BY_SHARE = minutes_by_share(40.0, 8_200_000)
"""Training of the bundled F5 on one processor core with bfloat16."""
MEL_FLOW_PARAMETERS = 71_300_000
"""Of the flow after the language model of CosyVoice 2, which is all that is trained of it."""


def _request(place: Place, plan: TrainingPlan) -> AverageVelocityRequest:
    return AverageVelocityRequest(
        method=str(plan.knobs["method"]),
        teacher_steps=int(plan.knobs["teacher_steps"]),
        **fine_tuning_arguments(place, plan),
    )


def _minutes(info: ModelInfo) -> float:
    return BY_SHARE(replace(info, parameters=MEL_FLOW_PARAMETERS) if info.mel_steps else info)


def _why_not(info: ModelInfo) -> str:
    if info.trained_guidance is not None:
        return f"{info.title} has its guidance in its weights already; load the model that it was made from."
    return why_not_trained(entry(info.id))


def _estimate(info: ModelInfo, spoken: bool) -> str:
    before = f" Without speech of your own, {TEACHER} first speaks 6,500 sentences." if spoken else ""
    return estimate_by_share(info, _minutes(info), "the bundled F5") + before


def _ready(figures: Values) -> tuple[Mapping[str, object], str]:
    return {}, f"Weights for one to four evaluations are ready: switch {TECHNIQUE.title} on."


def _offer(info: ModelInfo, knobs: Values) -> TrainingOffer | None:
    tip = "Open Training to train weights of this model for one to four evaluations"
    return None if info.interval_weights else TrainingOffer({}, "&Train weights for few evaluations…", tip)


FORM = TrainingForm(
    name=TECHNIQUE.name,
    title=f"{TECHNIQUE.title} weights",
    families=TECHNIQUE.families,
    intro="Trains weights of the loaded model with which one to four evaluations in one branch go the way of many "
    "steps under its usual guidance. A manifest is a CSV file with the columns audio and text.",
    knobs=(
        method_knob(METHODS),
        count_knob(
            "teacher_steps",
            "Steps of the model",
            "Steps of the model itself that one evaluation replaces in training; more are truer and slower.",
            TEACHER_STEPS,
            32,
            FEWEST_STEPS,
        ),
        OWN_SENTENCES,
    ),
    found=(
        Figure("left", "squared distance that is left"),
        Figure("distance 1", "distance, 1 evaluation", share=False),
        Figure("distance 2", "distance, 2 evaluations", share=False),
    ),
    progress="At step {step} {found} of the squared distance to many guided steps is left.",
    request=_request,
    minutes=_minutes,
    folder=lambda model, knobs: f"{model}-{knobs['method']}",
    fitting=usual_sentences,
    needs_manifest=True,
    remark=remark_on_sentences,
    why_not=_why_not,
    estimate=_estimate,
    ready=_ready,
    offer=_offer,
)
