"""Training students with fewer layers, as the panel Training offers it. Torch-free."""

from __future__ import annotations

from paretone.models.base import ModelInfo
from paretone.setting.knobs import Effect, Number, Values
from paretone.techniques.spade import RECOVERED, TECHNIQUE, StudentRequest, fitting_depth, parsed_layers
from paretone.training.forms import (
    SENTENCES,
    TOKEN_FIGURES,
    Figure,
    Place,
    TrainingForm,
    TrainingPlan,
    companion_arguments,
    knob_of,
    lasting,
    minutes_by_size,
    scaled_estimate,
)

_minutes = minutes_by_size(45.0)


def _request(place: Place, plan: TrainingPlan) -> StudentRequest:
    stage = float(plan.knobs["stage"])
    return StudentRequest(
        depth=int(plan.knobs["depth"]),
        retained=parsed_layers(str(plan.knobs["layers"])),
        stages=(stage,) if 0 < stage < plan.minutes else (),
        **companion_arguments(place, plan),
    )


def _depth(knobs: Values) -> int:
    return len(parsed_layers(str(knobs["layers"]))) or int(knobs["depth"])


def _kept(knobs: Values) -> str:
    layers = parsed_layers(str(knobs["layers"]))
    listed = ", ".join(map(str, layers))
    return f"Keeps layers {listed}." if layers else f"Keeps the {knobs['depth']} most important layers by measurement."


def _estimate(info: ModelInfo, spoken: bool) -> str:
    learnt = max((one.minutes for one in info.students if one.recovered), default=0.0)
    if learnt:
        return f"The present student was trained for {lasting(learnt)} of one CPU core."
    return scaled_estimate(info, _minutes(info))


_DEPTH = "Number of layers that the student keeps: the most important ones. At first half of the loaded model's."

FORM = TrainingForm(
    name=TECHNIQUE.name,
    title="Student (SPADE)",
    families=TECHNIQUE.families,
    intro="Trains a student with only some of the loaded model's layers, which learns to replace the removed ones, by "
    "SPADE's composite loss. It learns from speech that the model generates; a manifest of recordings is optional.",
    knobs=(
        # A number in any case, for half of the loaded model's layers is one as well.
        Number("depth", "Layers kept", _DEPTH, default=6, minimum=1, maximum=64, whole=True),
        knob_of(TECHNIQUE.knobs, "layers"),
        Number(
            "stage",
            "Early student after",
            "Also keep the student after this many minutes, to compare with the fully retrained one; 0 for none.",
            default=5.0,
            unit="min",
            minimum=0.0,
            maximum=100_000.0,
            effect=Effect.AFTER_TRAINING,
        ),
        SENTENCES,
    ),
    found=(Figure("divergence", "divergence from the whole model, nats", share=False), *TOKEN_FIGURES),
    progress="At step {step} the student is {found} nats from the whole model.",
    request=_request,
    minutes=_minutes,
    folder=lambda model, knobs: f"{model}-student-{_depth(knobs)}",
    fitting=lambda info: {"depth": fitting_depth(info.layers)},
    remark=_kept,
    estimate=_estimate,
    ready=lambda figures: (
        {"depth": int(figures["layers"]), "recovery": RECOVERED},
        f"A student with {figures['layers']} layers is ready: switch SPADE on.",
    ),
)
