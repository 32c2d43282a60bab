"""Training drafts, as the panel Training offers it. Torch-free."""

from __future__ import annotations

from paretone.techniques.speculative import TECHNIQUE, DraftRequest, fitting_upper
from paretone.training.forms import (
    SENTENCES,
    TOKEN_FIGURES,
    Figure,
    Place,
    TrainingForm,
    TrainingPlan,
    companion_arguments,
    count_knob,
    minutes_by_size,
    scaled_estimate,
)

_minutes = minutes_by_size(15.0)


def _request(place: Place, plan: TrainingPlan) -> DraftRequest:
    lower, upper = int(plan.knobs["lower"]), int(plan.knobs["upper"])
    return DraftRequest(lower=lower, upper=upper, **companion_arguments(place, plan))


FORM = TrainingForm(
    name=TECHNIQUE.name,
    title="Draft for SSD",
    families=TECHNIQUE.families,
    intro="Trains a small draft of the loaded model, which proposes tokens for speculative decoding. Its lowest layers "
    "and the head are trained, the topmost layers stay frozen. It learns from speech that the model generates; "
    "a manifest of recordings (a CSV file with the columns audio and text) is optional.",
    knobs=(
        count_knob("lower", "Lowest layers, trained", "Number of the lowest layers in the draft.", 2, 16, 1),
        count_knob("upper", "Topmost layers, kept", "Number of the topmost layers in the draft, unchanged.", 0, 16),
        SENTENCES,
    ),
    found=(Figure("acceptance", "drafts accepted"), *TOKEN_FIGURES),
    progress="At step {step} the model would accept {found} of the drafted tokens.",
    request=_request,
    minutes=_minutes,
    folder=lambda model, knobs: f"{model}-draft-{knobs['lower']}-{knobs['upper']}",
    fitting=lambda info: {"upper": fitting_upper(info.layers)},
    estimate=lambda info, spoken: scaled_estimate(info, _minutes(info)),
    ready=lambda figures: ({"draft": "trained"}, f"A draft with {figures['layers']} layers is ready: switch SSD on."),
)
