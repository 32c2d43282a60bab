"""Training weights that have guidance in them, as the panel Training offers it. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping

from paretone.models.base import ModelInfo
from paretone.setting.knobs import Values
from paretone.techniques.guidance_free import TECHNIQUE, GuidanceFreeRequest
from paretone.training.forms import (
    OWN_SENTENCES,
    TEACHER,
    Figure,
    Place,
    TrainingForm,
    TrainingOffer,
    TrainingPlan,
    estimate_by_share,
    fine_tuning_arguments,
    knob_of,
    method_knob,
    minutes_by_share,
    remark_on_sentences,
    usual_sentences,
)

METHODS = (
    ("model-guidance", "Model guidance (papers)", "The target follows the trained model's own guided velocity."),
    ("distillation", "Distillation (ours)", "The target is the guided velocity of the frozen model."),
)
SPEAKERS = {"natural phones": f"{TEACHER} first speaks 6,500 sentences, for seven minutes on an idle machine"}
"""Who speaks what bundled models learn from, by their text front ends."""
MINUTES = minutes_by_share(20.0, 8_200_000)
"""Training of the shipped weights (bundled model, w = 0.5) on one processor core with bfloat16."""


def _request(place: Place, plan: TrainingPlan) -> GuidanceFreeRequest:
    weight, method = float(plan.knobs["weight"]), str(plan.knobs["method"])
    return GuidanceFreeRequest(weight=weight, method=method, **fine_tuning_arguments(place, plan))


def _remark(knobs: Values) -> str:
    weight = float(knobs["weight"])
    equal = f"Equals guidance g = w / (1 − w) = {weight / (1 - weight):.2f}."
    return " ".join(filter(None, (equal, remark_on_sentences(knobs))))


def _why_not(info: ModelInfo) -> str:
    if info.trained_guidance is None and any(one.name == "guidance" for one in info.knobs):
        return ""
    title = TECHNIQUE.title
    return f"{info.title} cannot be trained here: only models of the F5-TTS family that are not {title} already."


def _estimate(info: ModelInfo, spoken: bool) -> str:
    before = (
        f" Without speech of your own, {SPEAKERS[info.text_front_end]}."
        if spoken and info.text_front_end in SPEAKERS
        else ""
    )
    return estimate_by_share(info, MINUTES(info), "the shipped weights") + before


def _ready(figures: Values) -> tuple[Mapping[str, object], str]:
    weight, title = float(figures["weight"]), TECHNIQUE.title
    return {"weight": round(weight, 2)}, f"{title} weights for w = {weight:.2f} are ready: switch {title} on."


def _offer(info: ModelInfo, knobs: Values) -> TrainingOffer:
    weight = float(knobs["weight"])
    text, tip = f"&Train weights for w = {weight:.2f}…", "Open Training to train weights for this guidance"
    return TrainingOffer({"weight": weight}, text, tip)


FORM = TrainingForm(
    name=TECHNIQUE.name,
    title=f"{TECHNIQUE.title} weights",
    families=TECHNIQUE.families,
    intro="Trains weights of the loaded model in which one branch replaces the two of classifier-free guidance. "
    "A manifest is a CSV file with the columns audio and text.",
    knobs=(
        knob_of(TECHNIQUE.knobs, "weight"),
        method_knob(METHODS),
        OWN_SENTENCES,
    ),
    found=(Figure("learnt", "guidance learned"), Figure("gap", "gap to the guided velocity")),
    progress="At step {step} one branch has learned {found} of the guidance.",
    request=_request,
    minutes=MINUTES,
    folder=lambda model, knobs: f"{model}-w-{float(knobs['weight']):.2f}",
    fitting=usual_sentences,
    needs_manifest=True,
    remark=_remark,
    why_not=_why_not,
    estimate=_estimate,
    ready=_ready,
    offer=_offer,
)
