"""Average velocity: weights with which one evaluation carries the state over an interval of time, guidance included.

One to four evaluations of one branch replace many guided steps. The weights are the technique's artefact: the same
architecture with another embedding, of the interval's length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from paretone.errors import SettingError
from paretone.export.accounts import Carried, knob_lines, whole_line
from paretone.export.f5_models import weights_target
from paretone.export.targets import Target
from paretone.figures.glyphs import Mark
from paretone.models.base import IntervalWeights, ModelInfo
from paretone.models.catalogue import entry
from paretone.models.declaration import Model
from paretone.observer import Check
from paretone.setting.knobs import NO_VALUES, Values, amount, count
from paretone.setting.plan import FlowPlan, NotPrepared, flow_of
from paretone.setting.profile import Profile
from paretone.setting.setting import UsedTechnique
from paretone.techniques import knobs_of
from paretone.techniques.base import (
    Conflict,
    Context,
    Paper,
    Technique,
    Weights,
    named_weights,
    other_checkpoint,
    to_type,
    training_job,
)
from paretone.training import forms
from paretone.training.requests import FineTuningRequest
from paretone.wording import counted

if TYPE_CHECKING:
    from paretone.models.f5.checkpoint import F5Checkpoint
    from paretone.techniques.average_velocity.exported_weights import AverageVelocityWeights


DISPLACEMENT, MEAN_FLOW = METHODS = ("displacement", "mean-flow")
"""Match the model's displacement (IntMeanFlow), or MeanFlow's own loss."""
GUIDANCE = ("guidance", "intelligibility", "similarity")
"""Options of guidance, of all models."""
MOST_EVALUATIONS = 4
HIGHEST_TEMPERATURE = 1.5
TEACHER_STEPS, FEWEST_STEPS = 8, 2
"""Steps of the frozen model that one evaluation from noise to speech replaces in training: default and minimum."""
SINGLE_SHARE = 0.45
"""Default share of training steps for a synthesis with one evaluation."""


@dataclass(frozen=True, kw_only=True)
class Targets:
    method: str = DISPLACEMENT
    teacher_steps: int = TEACHER_STEPS
    """Steps of the frozen model that one evaluation from noise to speech replaces; proportionally fewer for parts, at
    least two."""
    uses: int = 1
    """Training steps per displacement of the frozen model; reuse is cheaper than a new one."""
    single_share: float = SINGLE_SHARE
    """Share of training steps for a synthesis with one evaluation."""
    temperature: float = 1.0
    """Scale of the initial noise at inference; training uses the full noise."""


@dataclass(frozen=True, kw_only=True)
class AverageVelocityRequest(Targets, FineTuningRequest):
    """Request to fine-tune ``model`` so that few evaluations replace many guided steps. With a ``learning_rate`` but no
    ``matrix_rate``, AdamW trains all weights. The result is :class:`paretone.training.requests.Trained`."""

    guidance: Values = NO_VALUES
    """Options of the guidance to include; default: the model's usual ones."""
    initial: str = ""
    """File of average-velocity weights from the same checkpoint to start from; default: the model's own."""


def why_not_trained(chosen: Model) -> str:
    """Reason why weights of a model of the catalogue cannot be trained, as a sentence, or ``""``."""
    return "" if chosen.subject else f"{chosen.title} cannot be trained here: it declares no training of a flow."


NAME = "average_velocity"
OF_WEIGHTS = "the weights' own"


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    evaluations = int(knobs["evaluations"])
    _require_alone(context, evaluations)
    grid = {"steps": evaluations, "spacing": "uniform", "solver": "euler", "overshoot": 0.0}
    options = plan.options.replace(**{name: value for name, value in grid.items() if name in plan.options})
    plan = replace(plan, options=context.info.guidance.off(options))
    if not context.loaded:
        return replace(plan, fingerprint=context.entry.artefact or "weights that are not known yet")
    try:
        weights = chosen(context.info, context.entry, evaluations)
    except NotPrepared as error:
        raise NotPrepared(str(error), plan, error.command) from None
    plan = replace(
        plan,
        options=plan.options.replace(sway=weights.sway),
        weights=weights,
        fingerprint=weights.fingerprint,
        temperature=float(knobs["temperature"]) or weights.temperature,
    )
    differing = [name for name, value in weights.guidance.items() if abs(float(plan.reference[name]) - value) > 0.1]
    if not differing:
        return plan
    own = " and ".join(f"{name} {weights.guidance[name]:.3g}" for name in differing)
    baseline = " and ".join(f"{name} {float(plan.reference[name]):.3g}" for name in differing)
    return plan.noted(
        f"These weights include {own}, but the baseline runs with {baseline}: their takes differ in guidance, too. For "
        "a fair comparison, set the baseline to that."
    )


def describe(knobs: Values) -> str:
    chosen = f", temperature {temperature:g}" if (temperature := knobs["temperature"]) else ""
    return f"{counted(knobs['evaluations'], 'evaluation', 'evaluations')} in one branch{chosen}"


def _require_alone(context: Context, evaluations: int) -> None:
    """Raise :class:`SettingError` if the checkpoint has its guidance in its weights, if another technique decides grid,
    solver or guidance, or for skipping with one evaluation."""
    info, title = context.info, TECHNIQUE.title
    if info.trained_guidance is not None:
        raise SettingError(
            f"{info.title} has its guidance in its weights already (w = {info.trained_guidance:.2f}); {title} starts "
            "from the model that it was made from."
        )
    for slot in ("grid", "solver", "guidance"):
        if slot in context.taken:
            raise Conflict(
                f"{title} was trained on its own {counted(evaluations, 'evaluation', 'evaluations')} with guidance "
                f"inside, so {context.title_in(slot)} has nothing to decide; do without one of the two.",
                slot,
            )
    if evaluations == 1 and "skipping" in context.taken:
        raise Conflict(
            f"With one evaluation there is no earlier one for {context.title_in('skipping')} to reuse; use two or more "
            "evaluations, or do without it.",
            "skipping",
        )


def chosen(info: ModelInfo, entry: UsedTechnique, evaluations: int) -> IntervalWeights:
    """Weights of the loaded model for ``entry``: those with its fingerprint, else the first trained for this number of
    evaluations. Raises :class:`NotPrepared` with the state and the command to train some."""
    if entry.artefact:
        return named_weights(info.interval_weights, entry.artefact, "average-velocity weights", info)
    near = fitting(info, evaluations)
    if not near:
        raise NotPrepared(
            f"{info.title} has no average-velocity weights for {counted(evaluations, 'evaluation', 'evaluations')} "
            f"yet; train some first.{other_checkpoint(info, 'intervals')}",
            command=to_type(
                f"train average-velocity --minutes {_minutes(info):.0f} --work runs/average-velocity", info
            ),
        )
    return near[0]


def fitting(info: ModelInfo, evaluations: int) -> tuple[IntervalWeights, ...]:
    """Weights of the loaded model that were trained for this number of evaluations."""
    return tuple(one for one in info.interval_weights if evaluations <= one.evaluations)


TECHNIQUE = Technique(
    name=NAME,
    title="Average velocity",
    summary="Uses weights trained to go the way of many guided steps in one to four evaluations.",
    group="Fewer evaluations",
    benefit="One to four evaluations instead of many",
    paper=Paper("IntMeanFlow: Few-step Speech Generation with Integral Velocity Distillation", "arXiv 2510.07979"),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="weights",
    place=25,
    mark=Mark("red", "diamond"),
    exports=__name__,
    benches=(("few-evaluations", f"{__name__}.bench"),),
    commands=(f"{__name__}.command",),
    jobs=(training_job(__name__, "AverageVelocityRequest", "recipe"),),
    knobs=(
        count(
            "evaluations",
            "Evaluations",
            "Evaluations from noise to speech, each in one branch. One set of weights serves all of these numbers; "
            "more keep more of the variety.",
            default=2,
            between=(1, MOST_EVALUATIONS),
        ),
        amount(
            "temperature",
            "Temperature",
            "Scale of the noise that a take starts from: with less, speech is calmer, more natural and less varied. 0: "
            f"{OF_WEIGHTS}, usually 1.",
            default=0.0,
            between=(0.0, HIGHEST_TEMPERATURE),
            step=0.05,
            lowest=OF_WEIGHTS,
            later=True,
        ),
    ),
    resolve=resolve,
    describe=describe,
    weights=Weights(
        all_of=lambda info: info.interval_weights,
        fitting=lambda info, knobs: fitting(info, int(knobs["evaluations"])),
        knobs_of=lambda weights: {},  # One set of weights serves all numbers of evaluations.
        of=lambda plan: flow_of(plan).weights,
        required=True,
    ),
)


OFFER = forms.TrainingOffer(
    {}, "&Train weights for few evaluations…", "Open Training to train weights of this model for 1 to 4 evaluations"
)
BY_SHARE = forms.minutes_by_share(40.0, 8_200_000)
"""Training of the bundled F5 on one CPU core with bfloat16."""


def _minutes(info: ModelInfo) -> float:
    return BY_SHARE(info.of_flow)


def _why_not(info: ModelInfo) -> str:
    if info.trained_guidance is not None:
        return f"{info.title} has its guidance in its weights already; load the model that it was made from."
    return why_not_trained(entry(info.id))


def _estimate(info: ModelInfo, spoken: bool) -> str:
    before = f" Without speech of your own, {forms.TEACHER} first speaks 6,500 sentences." if spoken else ""
    return forms.estimate_by_share(info, _minutes(info), "the bundled F5") + before


FORM = forms.TrainingForm(
    name=TECHNIQUE.name,
    title=f"{TECHNIQUE.title} weights",
    families=TECHNIQUE.families,
    intro="Trains weights of the loaded model with which one to four evaluations in one branch go the way of many "
    "steps under its usual guidance. A manifest is a CSV file with the columns audio and text.",
    knobs=(
        forms.method_knob(
            (
                (
                    "displacement",
                    "Displacement (IntMeanFlow)",
                    "The target is how far the frozen model goes in a few guided steps.",
                ),
                ("mean-flow", "MeanFlow", "Learns from speech alone, in full precision; less stable."),
            )
        ),
        forms.count_knob(
            "teacher_steps",
            "Steps of the model",
            "Steps of the model itself that one evaluation replaces in training; more are truer and slower.",
            TEACHER_STEPS,
            32,
            FEWEST_STEPS,
        ),
        forms.OWN_SENTENCES,
    ),
    found=(
        forms.Figure("left", "squared distance that is left"),
        forms.Figure("distance 1", "distance, 1 evaluation", share=False),
        forms.Figure("distance 2", "distance, 2 evaluations", share=False),
    ),
    progress="At step {step} {found} of the squared distance to many guided steps is left.",
    request=lambda place, plan: AverageVelocityRequest(
        method=str(plan.knobs["method"]),
        teacher_steps=int(plan.knobs["teacher_steps"]),
        **forms.fine_tuning_arguments(place, plan),
    ),
    minutes=_minutes,
    folder=lambda model, knobs: f"{model}-{knobs['method']}",
    fitting=forms.usual_sentences,
    needs_manifest=True,
    remark=forms.remark_on_sentences,
    why_not=_why_not,
    estimate=_estimate,
    ready=lambda figures: ({}, f"Weights for one to four evaluations are ready: switch {TECHNIQUE.title} on."),
    offer=lambda info, knobs: None if info.interval_weights else OFFER,
)


INTERVALS = "weights with an embedding of the interval's length"
"""Capability of targets that run these weights."""
NO_TEMPERATURE = "the official sampler starts from noise of scale 1; scale it yourself"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Carried only by targets with an embedding of the interval's length."""
    if INTERVALS in target.takes:
        temperature = knobs_of(entry)["temperature"]
        without = replace(entry, knobs=entry.knobs.replace(temperature=0.0))
        dropped = () if temperature in (0, 1) else knob_lines(entry, NO_TEMPERATURE, ("temperature",))
        return Carried((whole_line(without, "its weights are written"),), dropped)
    return Carried(
        why_not=f"Average velocity needs an embedding of the interval's length, which {target.program} lacks, so it "
        "cannot run the profile; export its weights, and add the embedding as Paretone's guide shows."
    )


def _why_no_weights(profile: Profile, guided_weights: bool) -> str:
    if profile.setting.technique(NAME) is not None:
        return ""
    return "The profile does without Average velocity: there are no such weights to write; use it in the profile."


def weights(profile: Profile, checkpoint: F5Checkpoint, check: Check) -> AverageVelocityWeights | None:
    """Weights that the profile runs; ``None`` if it does not use the technique."""
    from paretone.techniques.average_velocity.exported_weights import AverageVelocityWeights  # Imports torch.

    if profile.setting.technique(NAME) is None:
        return None
    return AverageVelocityWeights.of(profile, checkpoint, check)


EXPORTED_WEIGHTS = weights_target(
    "average-velocity",
    "Average-velocity weights",
    "weights for few evaluations: the official layout and one more embedding",
    INTERVALS,
    _why_no_weights,
    weights,
)
TARGETS = (EXPORTED_WEIGHTS,)
