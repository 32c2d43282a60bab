"""CFG-free flow matching: weights trained so that one branch speaks as two do under classifier-free guidance.

The weights are the technique's artefact: the same architecture, half the forward passes. A model trained with the
weight w equals guidance of strength g = w / (1 − w), as the official code counts it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.models.base import ModelInfo, TrainedWeights, WeightSet
from paretone.setting.knobs import Effect, Number, Values
from paretone.setting.plan import FlowPlan, NotPrepared
from paretone.setting.setting import UsedTechnique
from paretone.techniques.base import Context, Job, Paper, Technique, Weights, to_type
from paretone.training.requests import FineTuningRequest

METHODS = ("model-guidance", "distillation")
"""The papers' method, and copying the guided model."""


@dataclass(frozen=True, kw_only=True)
class GuidanceFreeRequest(FineTuningRequest):
    """Fine-tune ``model`` so that one branch speaks as under guidance. Without a ``matrix_rate``, AdamW moves
    everything. The result is :class:`paretone.training.requests.Trained`."""

    weight: float
    """w, between 0 and 1; equals guidance w / (1 − w)."""
    method: str = METHODS[0]
    weight_warm_up: float = 0.1
    """Share of the budget in which w rises."""
    latest: float = 1.0
    """Time after which the target is the plain one."""
    average_difference: bool = False
    """Whether the difference of the branches is the averaged model's."""


NAME = "guidance_free"
SAME_WEIGHT = 0.005
"""Weights that differ by no more are taken for equal: two thirds cannot be typed."""


UNEQUAL_GUIDANCE = 0.1
"""Strengths that differ by no more are taken for equal: the names of weights have two digits."""


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    """Other weights run, which have their guidance in them."""
    require_guidance(context.info)
    plan = replace(plan, options=plan.options.replace(guidance=0.0))
    if not context.loaded:
        return replace(plan, fingerprint=context.entry.artefact or "weights that are not known yet")
    try:
        weights = chosen(context.info, context.entry, float(knobs["weight"]))
    except NotPrepared as error:
        raise NotPrepared(str(error), plan, error.command) from None
    plan = replace(plan, weights=weights, fingerprint=weights.fingerprint)
    guidance, strength = plan.reference["guidance"], weights.equivalent_guidance
    if abs(guidance - strength) <= UNEQUAL_GUIDANCE:
        return plan
    return plan.noted(
        f"The CFG-free weights equal guidance {strength:.3g}, but the baseline is guided by {guidance:.3g}: their "
        f"takes differ in guidance, too. For a fair comparison, set it to {strength:.3g}."
    )


def describe(knobs: Values) -> str:
    """Guidance equal to the weight, in words."""
    weight = knobs["weight"]
    return f"w = {weight:.2f} equals guidance g = {weight / (1 - weight):.2f}, in one branch"


def require_guidance(info: ModelInfo) -> None:
    """Raise :class:`SettingError` unless the model is guided in the way that CFG-free replaces."""
    if "guidance" not in {knob.name for knob in info.knobs}:
        raise SettingError(f"{info.title} is guided differently from F5-TTS, so there are no CFG-free weights for it.")


def fitting(info: ModelInfo, weight: float) -> tuple[WeightSet, ...]:
    """The loaded model's weights for ``weight``, the nearest first."""
    near = [one for one in info.weight_sets if abs(one.weight - weight) <= SAME_WEIGHT]
    return tuple(sorted(near, key=lambda one: abs(one.weight - weight)))


def chosen(info: ModelInfo, entry: UsedTechnique, weight: float) -> WeightSet:
    """The weights of the loaded model that ``entry`` uses: those that it names by fingerprint, else any of
    ``weight``.

    Raises :class:`SettingError` that says what there is and how to come by others.
    """
    require_guidance(info)
    if info.trained_guidance is not None:
        raise SettingError(
            f"{info.title} is already CFG-free (w = {info.trained_guidance:.2f}): it runs one branch. "
            f"Do without {TECHNIQUE.title}."
        )
    if entry.artefact:
        named = next((one for one in info.weight_sets if one.fingerprint == entry.artefact), None)
        if named is None:
            raise NotPrepared(
                f"The CFG-free weights {entry.artefact[:12]!r} (w = {weight:.2f}) are not among those of {info.title} "
                "here; put their file next to the others, or train your own weights.",
                command=f"paretone models {info.id}",
            )
        return named
    near = fitting(info, weight)
    if not near:
        there = ", ".join(f"{one.weight:.2f}" for one in info.weight_sets)
        has = f"it has weights for {there}" if there else "it has none yet"
        raise NotPrepared(
            f"{info.title} has no CFG-free weights for w = {weight:.2f} ({has}); train some for it"
            f"{', or choose an existing w' if there else ''}.",
            command=to_type(f"train cfg-free --weight {weight:g} --minutes 60 --work runs/cfg-free", info),
        )
    return near[0]


def _knobs_of(one: TrainedWeights) -> dict[str, object]:
    """The knob that distinguishes these weights."""
    assert isinstance(one, WeightSet)
    return {"weight": one.weight}


WEIGHTS = Weights(
    all_of=lambda info: info.weight_sets,
    fitting=lambda info, knobs: fitting(info, float(knobs["weight"])),
    knobs_of=_knobs_of,
    required=True,
)
TECHNIQUE = Technique(
    name=NAME,
    title="CFG-free",
    summary="Uses weights trained to include guidance, so that one branch runs instead of two.",
    benefit="One pass per step instead of two",
    paper=Paper(
        "Towards Flow-Matching-based TTS without Classifier-Free Guidance",
        "arXiv 2504.20334",
    ),
    families=("flow",),
    slot="weights",
    place=20,
    mark=Mark("orange", "square"),
    exports="paretone.techniques.guidance_free.exports",
    benches=(("guidance-free", "paretone.techniques.guidance_free.bench"),),
    views=("paretone.techniques.guidance_free.view",),
    commands=("paretone.techniques.guidance_free.command",),
    jobs=(
        Job(
            "train",
            "Preparing speech",
            "paretone.techniques.guidance_free:GuidanceFreeRequest",
            "paretone.techniques.guidance_free.fine_tuning:train",
            on_loaded_model=False,
            finds_weights=True,
            form="paretone.techniques.guidance_free.training_form:FORM",
        ),
    ),
    options=("guidance",),
    knobs=(
        Number(
            "weight",
            "Guidance weight",
            "Guidance that the weights include: w equals guidance w / (1 − w), so 0.5 for 1 and "
            "0.67 for 2, the usual strength. Train a value without weights first.",
            default=0.67,
            symbol="w",
            effect=Effect.AFTER_TRAINING,
            minimum=0.05,
            maximum=0.95,
            step=0.01,
        ),
    ),
    resolve=resolve,
    describe=describe,
    weights=WEIGHTS,
)
