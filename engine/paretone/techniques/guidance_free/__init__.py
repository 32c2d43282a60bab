"""CFG-free flow matching: weights trained so that one branch replaces the two of classifier-free guidance.

The weights are the technique's artefact: the same architecture, half the forward passes. Training with the weight w
equals guidance of strength g = w / (1 − w), in the official code's definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from paretone.errors import SettingError
from paretone.export.accounts import F5_WEIGHTS, Carried, whole_line
from paretone.export.f5_models import weights_target
from paretone.export.targets import Target, lacking
from paretone.figures.glyphs import Mark
from paretone.models.base import ModelInfo, WeightSet
from paretone.models.catalogue import entry
from paretone.models.declaration import Model
from paretone.observer import Check
from paretone.sampling.guidance import TwoWeightGuidance
from paretone.setting.knobs import Choice, Effect, Switch, Values, WholeNumbers, amount, whole_numbers
from paretone.setting.plan import FlowPlan, NotPrepared, flow_of
from paretone.setting.profile import Profile
from paretone.setting.setting import Published, Setting, UsedTechnique
from paretone.techniques import technique
from paretone.techniques.base import Context, Paper, Technique, Weights, named_weights, to_type, training_job
from paretone.training import forms
from paretone.training.requests import FineTuningRequest

if TYPE_CHECKING:
    from paretone.models.f5.checkpoint import F5Checkpoint
    from paretone.techniques.guidance_free.exported_weights import GuidanceFreeWeights


METHODS = ("model-guidance", "distillation")
"""The papers' method, and distillation of the guided model."""
SWAYED, UNIFORM = TIMES = ("swayed", "uniform")
"""Flow times of training: half of them warped towards the noise, or t ~ U(0, 1) as published."""
WARM_UP = 50


@dataclass(frozen=True, kw_only=True)
class Targets:
    method: str = METHODS[0]
    weight_warm_up: float = 0.1
    """Share of the budget over which w rises from 0, the value of the initial model."""
    latest: float = 1.0
    """Flow time after which targets have no guidance."""
    average_difference: bool = False
    """Whether the difference of the branches is from the averaged model, as in the first authors' code: a third
    pass."""
    stop_gradient: bool = True
    """False: the paper's ablation, in which the loss is also differentiated by the difference of the branches."""
    warm_up: int = WARM_UP


@dataclass(frozen=True, kw_only=True)
class GuidanceFreeRequest(Targets, FineTuningRequest):
    """Request to fine-tune ``model`` so that one branch replaces guidance. Without a ``matrix_rate``, AdamW trains all
    weights. The result is :class:`paretone.training.requests.Trained`."""

    weight: float
    """w, between 0 and 1; equals guidance w / (1 − w)."""
    times: str = SWAYED
    """One of :data:`TIMES`."""
    stages: tuple[int, ...] = ()


NAME = "guidance_free"
SAME_WEIGHT = 0.005
"""Largest difference of weights w that count as equal: two thirds cannot be typed."""
UNEQUAL_GUIDANCE = 0.1
"""Largest difference of strengths that count as equal: the names of weights have two digits."""


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    require_guidance(context.info)
    on_top = float(knobs["guidance"])
    plan = replace(plan, options=plan.options.replace(guidance=on_top))
    if not context.loaded:
        plan = replace(plan, fingerprint=context.entry.artefact or "weights that are not known yet")
        return plan.noted(*_both(knobs["weight"], on_top))
    trained = context.info.trained_guidance
    if trained is not None and on_top and abs(trained - knobs["weight"]) <= SAME_WEIGHT:
        return plan.noted(*_both(trained, on_top))
    try:
        weights = chosen(context.info, context.entry, float(knobs["weight"]))
    except NotPrepared as error:
        raise NotPrepared(str(error), plan, error.command) from None
    plan = replace(plan, weights=weights, fingerprint=weights.fingerprint)
    if on_top:
        return plan.noted(*_both(weights.weight, on_top))
    guidance, strength = plan.reference["guidance"], weights.equivalent_guidance
    if abs(guidance - strength) <= UNEQUAL_GUIDANCE:
        return plan
    return plan.noted(
        f"The CFG-free weights equal guidance {strength:.3g}, but the baseline is guided by {guidance:.3g}: their "
        f"takes differ in guidance, too. For a fair comparison, set it to {strength:.3g}."
    )


def _both(weight: float, on_top: float) -> tuple[str, ...]:
    """Note on guidance ``on_top`` of that in weights trained with ``weight``. The effect of the conditions is
    1 / (1 − w) times the plain model's, and guidance multiplies it by 1 + g."""
    if not on_top:
        return ()
    return (
        f"Guidance {on_top:.3g} on top of the {weight / (1 - weight):.3g} in the CFG-free weights is guidance "
        f"{(1 + on_top) / (1 - weight) - 1:.3g} together, in two branches, so no branch is saved. With 2 on top of "
        "w = 0.7, word error rates of 1.80 % at 32 steps and of 9.94 % at 7 were found, against 1.96 % and 2.02 % in "
        "one branch (arXiv 2504.20334, table I).",
    )


def guided(setting: Setting, strength: float) -> Setting:
    name = "flow_guidance" if "flow_guidance" in setting.options else "guidance"
    return replace(setting, options=setting.options.replace(**{name: strength}))


def describe(knobs: Values) -> str:
    weight, on_top = knobs["weight"], knobs.get("guidance", 0.0)
    equal = f"w = {weight:.2f} equals guidance g = {weight / (1 - weight):.2f}, in one branch"
    return f"{equal}; with {on_top:.3g} on top, in two" if on_top else equal


def require_guidance(info: ModelInfo) -> None:
    """Raise :class:`SettingError` unless the model has the kind of guidance that CFG-free replaces."""
    if "guidance" not in {knob.name for knob in info.of_flow.knobs}:
        raise SettingError(f"{info.title} is guided differently from F5-TTS, so there are no CFG-free weights for it.")


def fitting(info: ModelInfo, weight: float) -> tuple[WeightSet, ...]:
    """Weights of the loaded model for ``weight``, nearest first, stages of trainings last."""
    near = [one for one in info.weight_sets if abs(one.weight - weight) <= SAME_WEIGHT]
    return tuple(sorted(near, key=lambda one: (one.stage, abs(one.weight - weight))))


def chosen(info: ModelInfo, entry: UsedTechnique, weight: float) -> WeightSet:
    """Weights of the loaded model for ``entry``: those with its fingerprint, else any of ``weight``. Raises
    :class:`SettingError` with the available weights and the command to train others."""
    require_guidance(info)
    if info.trained_guidance is not None:
        raise SettingError(
            f"{info.title} is already CFG-free (w = {info.trained_guidance:.2f}): it runs one branch. "
            f"Do without {TECHNIQUE.title}, or choose this w and guidance on top."
        )
    if entry.artefact:
        return named_weights(info.weight_sets, entry.artefact, f"CFG-free weights for w = {weight:.2f}", info)
    near = fitting(info, weight)
    if not near:
        there = ", ".join(f"{one.weight:.2f}" for one in info.weight_sets)
        has = f"it has weights for {there}" if there else "it has none yet"
        raise NotPrepared(
            f"{info.title} has no CFG-free weights for w = {weight:.2f} ({has}); train some for it"
            f"{', or choose an existing w' if there else ''}.",
            command=to_type(
                f"train cfg-free --weight {weight:g} --minutes {_minutes(info):.0f} --work runs/cfg-free", info
            ),
        )
    return near[0]


_USUAL = " Its w is 0.7; 0.67 equals the guidance 2 of F5-TTS, and of its baseline."
PUBLISHED = tuple(
    Published(
        f"w={weight:g}{'-cfg' if on_top else ''}{'-epss' if spacing == 'epss' else ''}",
        f"table I, {steps} steps",
        ("F5TTS_v1_Base", "F5TTS_Base"),
        Values(weight=weight, guidance=on_top),
        Values(steps=steps, spacing=spacing, sway=-1.0, guidance=2.0, solver="euler"),
        remark="The paper trains from scratch at t ~ U(0, 1); weights here are fine-tuned, by default at other times "
        f"(paretone train cfg-free --times uniform).{_USUAL if weight != 0.7 else ''}",
    )
    for weight, on_top in ((0.67, 0.0), (0.7, 0.0), (0.7, 2.0))
    for steps, spacing in ((32, "uniform"), (7, "epss"))
)
"""CFG-free weights in one branch, and with guidance on top."""
TECHNIQUE = Technique(
    name=NAME,
    title="CFG-free",
    summary="Uses weights trained to include guidance, so that one branch runs instead of two.",
    benefit="One pass per step instead of two",
    paper=Paper("Towards Flow-Matching-based TTS without Classifier-Free Guidance", "arXiv 2504.20334"),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="weights",
    place=20,
    mark=Mark("orange", "square"),
    exports=__name__,
    benches=(("guidance-free", f"{__name__}.bench"),),
    views=(f"{__name__}.view", f"{__name__}.view:STAGES"),
    commands=(f"{__name__}.command",),
    jobs=(training_job(__name__, "GuidanceFreeRequest", "recipe"),),
    options=("guidance",),
    knobs=(
        amount(
            "weight",
            "Guidance weight",
            "Guidance that the weights include: w equals guidance w / (1 − w), so 0.5 for 1 and "
            "0.67 for 2, the usual strength. Train a value without weights first.",
            default=0.67,
            between=(0.05, 0.95),
            symbol="w",
            effect=Effect.AFTER_TRAINING,
            step=0.01,
        ),
        amount(
            "guidance",
            "Guidance on top",
            "Strength of guidance in addition to that in the weights, as in half of the paper's table of such weights: "
            "both branches run, so no branch is saved, and few steps break under it. 0: one branch.",
            default=0.0,
            between=(0.0, 10.0),
            step=0.1,
            lowest="none",
            later=True,
        ),
    ),
    resolve=resolve,
    describe=describe,
    weights=Weights(
        all_of=lambda info: info.weight_sets,
        fitting=lambda info, knobs: fitting(info, float(knobs["weight"])),
        knobs_of=lambda one: {"weight": one.weight},
        of=lambda plan: flow_of(plan).weights,
        required=True,
    ),
    published=PUBLISHED,
)


_METHODS = (
    ("model-guidance", "Model guidance (papers)", "The target follows the trained model's own guided velocity."),
    ("distillation", "Distillation (ours)", "The target is the guided velocity of the frozen model."),
)
MINUTES = forms.minutes_by_share(20.0, 8_200_000)
"""Training of the shipped weights (bundled model, w = 0.5) on one CPU core with bfloat16."""


def _request(place: forms.Place, plan: forms.TrainingPlan) -> GuidanceFreeRequest:
    knobs = plan.knobs
    return GuidanceFreeRequest(
        weight=float(knobs["weight"]),
        method=str(knobs["method"]),
        times=str(knobs["times"]),
        stop_gradient=bool(knobs["stop_gradient"]),
        weight_warm_up=float(knobs["weight_warm_up"]),
        warm_up=int(knobs["warm_up"]),
        stages=whole_numbers(str(knobs["stages"]), least=1),
        **forms.fine_tuning_arguments(place, plan),
    )


def _remark(knobs: Values) -> str:
    weight = float(knobs["weight"])
    equal = f"Equals guidance g = w / (1 − w) = {weight / (1 - weight):.2f}."
    return " ".join(filter(None, (equal, forms.remark_on_sentences(knobs))))


def why_not_trained(chosen: Model) -> str:
    """Reason why weights of a model of the catalogue cannot be trained, as a sentence, or ``""``."""
    if chosen.subject and not isinstance(chosen.guidance, TwoWeightGuidance):
        return ""
    return f"{chosen.title} cannot be trained here: it declares no training of a flow with one strength of guidance."


def _why_not(info: ModelInfo) -> str:
    if info.trained_guidance is not None:
        return f"{info.title} is {TECHNIQUE.title} already; load the model that it was made from."
    return why_not_trained(entry(info.id))


def _minutes(info: ModelInfo) -> float:
    return MINUTES(info.of_flow)


def _estimate(info: ModelInfo, spoken: bool) -> str:
    before = ""
    if spoken and info.text_front_end == "natural phones":
        before = (
            f" Without speech of your own, {forms.TEACHER} first speaks 6,500 sentences, for seven minutes on an idle "
            "machine."
        )
    return forms.estimate_by_share(info, _minutes(info), "the shipped weights") + before


def _ready(figures: Values) -> tuple[Mapping[str, object], str]:
    weight, title = float(figures["weight"]), TECHNIQUE.title
    return {"weight": round(weight, 2)}, f"{title} weights for w = {weight:.2f} are ready: switch {title} on."


def _offer(info: ModelInfo, knobs: Values) -> forms.TrainingOffer:
    weight = float(knobs["weight"])
    text, tip = f"&Train weights for w = {weight:.2f}…", "Open Training to train weights for this guidance"
    return forms.TrainingOffer({"weight": weight}, text, tip)


FORM = forms.TrainingForm(
    name=TECHNIQUE.name,
    title=f"{TECHNIQUE.title} weights",
    families=TECHNIQUE.families,
    intro="Trains weights of the loaded model in which one branch replaces the two of classifier-free guidance. "
    "A manifest is a CSV file with the columns audio and text.",
    knobs=(
        forms.knob_of(TECHNIQUE.knobs, "weight"),
        forms.method_knob(_METHODS),
        Choice(
            "times",
            "Flow times",
            "Distribution of the flow time t in training. Half swayed (ours): half of the times are uniform, half are "
            "warped towards the noise like sway sampling. Uniform (published): t ~ U(0, 1).",
            default=SWAYED,
            values=TIMES,
            titles=("Half swayed (ours)", "Uniform (published)"),
            effect=Effect.AFTER_TRAINING,
        ),
        Switch(
            "stop_gradient",
            "Stop gradient",
            "Whether the difference of the branches in the target is a constant, as published. Off is the paper's "
            "ablation: the loss falls, but the weights then speak noise.",
            default=True,
            effect=Effect.AFTER_TRAINING,
        ),
        amount(
            "weight_warm_up",
            "Warm-up of w",
            "Share of the training over which w rises from 0. 0: none, as in the paper, which trained from scratch.",
            default=0.1,
            between=(0.0, 1.0),
            step=0.05,
            effect=Effect.AFTER_TRAINING,
        ),
        forms.count_knob(
            "warm_up",
            "Warm-up of the rate",
            "Steps over which the learning rate rises; the paper's 500,000 updates began with 20,000.",
            WARM_UP,
            1_000_000,
            unit="steps",
        ),
        WholeNumbers(
            "stages",
            "Stages",
            "Also keep the weights after these numbers of steps, separated by commas: the view Weights over training "
            "draws their word errors and similarity (figure 2 of the paper). Empty: none.",
            default="",
            effect=Effect.AFTER_TRAINING,
            least=1,
            wanted="numbers of steps separated by commas, such as 100,200",
        ),
        forms.OWN_SENTENCES,
    ),
    found=(forms.Figure("learnt", "guidance learned"), forms.Figure("gap", "gap to the guided velocity")),
    progress="At step {step} one branch has learned {found} of the guidance.",
    request=_request,
    minutes=_minutes,
    folder=lambda model, knobs: f"{model}-w-{float(knobs['weight']):.2f}",
    fitting=forms.usual_sentences,
    needs_manifest=True,
    remark=_remark,
    why_not=_why_not,
    estimate=_estimate,
    ready=_ready,
    offer=_offer,
)


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Carry the weights if the target runs weights of F5-TTS."""
    if F5_WEIGHTS not in target.takes:
        return lacking(target, entry)
    on_top = float(entry.knobs.get("guidance", 0.0))
    how = f"with guidance {on_top:.3g} on top" if on_top else "without guidance"
    return Carried((whole_line(entry, f"its weights are written, and run {how}"),))


def _why_no_weights(profile: Profile, guided_weights: bool) -> str:
    if guided_weights or profile.setting.technique(NAME) is not None:
        return ""
    return "The profile does not use CFG-free, so there are no CFG-free weights to write; use CFG-free in it."


def weights(profile: Profile, checkpoint: F5Checkpoint, check: Check) -> GuidanceFreeWeights | None:
    """Weights that the profile runs, or the checkpoint's own if they are CFG-free."""
    from paretone.techniques.guidance_free.exported_weights import GuidanceFreeWeights  # Imports torch.

    others = [one for one in profile.setting.techniques if one.technique != NAME and technique(one.technique).weights]
    if others:  # Their own technique exports them.
        return None
    return GuidanceFreeWeights.of(profile, checkpoint, check)


SAFETENSORS = weights_target(
    "safetensors", "CFG-free weights", "CFG-free weights in the official layout", F5_WEIGHTS, _why_no_weights, weights
)
TARGETS = (SAFETENSORS,)
