"""Average velocity: weights with which one evaluation carries the state over an interval of time, guidance included.

One to four evaluations in one branch take the place of many guided steps. The weights are the technique's artefact: the
same architecture with one more embedding, of the interval's length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.models.base import IntervalWeights, ModelInfo, TrainedWeights
from paretone.models.catalogue import F5, CatalogueEntry
from paretone.setting.knobs import NO_VALUES, Number, Values
from paretone.setting.plan import FlowPlan, LanguagePlan, NotPrepared
from paretone.setting.setting import UsedTechnique
from paretone.techniques.base import (
    Conflict,
    Context,
    Job,
    Paper,
    Technique,
    Weights,
    named_weights,
    other_checkpoint,
    to_type,
)
from paretone.training.requests import FineTuningRequest

DISPLACEMENT, MEAN_FLOW = METHODS = ("displacement", "mean-flow")
"""Copying how far the model goes (IntMeanFlow), and MeanFlow's own loss."""
MOST_EVALUATIONS = 4
HIGHEST_TEMPERATURE = 1.5
TEACHER_STEPS, FEWEST_STEPS = 8, 2
"""Steps of the frozen model that one evaluation from noise to speech replaces in training: as a rule, and at least."""
SINGLE_SHARE = 0.45
"""Share of the steps that learn a synthesis of one evaluation, as a rule."""


@dataclass(frozen=True, kw_only=True)
class AverageVelocityRequest(FineTuningRequest):
    """Fine-tune ``model`` so that few evaluations speak as many guided steps do. Where a ``learning_rate`` is given and
    no ``matrix_rate``, AdamW moves everything. The result is :class:`paretone.training.requests.Trained`."""

    guidance: Values = NO_VALUES
    """Options of the guidance to include; those that are not given are the model's usual ones."""
    method: str = DISPLACEMENT
    teacher_steps: int = TEACHER_STEPS
    """Steps of the model's own that one evaluation from noise to speech replaces in training; fewer for parts."""
    uses: int = 1
    """Training steps that learn from each displacement of the frozen model's: more are cheaper than new ones."""
    single_share: float = SINGLE_SHARE
    """Share of the steps that learn a synthesis of one evaluation."""
    temperature: float = 1.0
    """Scale of the initial noise that the weights are to be used with; they are trained with all of it."""
    initial: str = ""
    """File of such weights, made from the same checkpoint, to start from; else from the model's own."""


def why_not_trained(chosen: CatalogueEntry) -> str:
    """Why weights of a model of the catalogue cannot be trained, as a sentence, or ``""``."""
    if chosen.kind == F5 or chosen.loader == "megatts3" or chosen.mel_steps:
        return ""
    return f"{chosen.title} cannot be trained here, only F5-TTS, MegaTTS 3 and the flow of CosyVoice 2."


NAME = "average_velocity"
UNEQUAL_GUIDANCE = 0.1
"""Strengths that differ by no more are taken for equal."""
OF_WEIGHTS = "the weights' own"


def resolve(context: Context, knobs: Values, plan: FlowPlan | LanguagePlan) -> FlowPlan | LanguagePlan:
    """Other weights run, on their own grid, which have their guidance in them."""
    evaluations = int(knobs["evaluations"])
    if isinstance(plan, LanguagePlan):
        return _of_tokens(context, knobs, plan)
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
        temperature=_temperature(knobs, weights),
    )
    return plan.noted(*_remarks(weights, plan.reference))


def _of_tokens(context: Context, knobs: Values, plan: LanguagePlan) -> LanguagePlan:
    """The same for the flow that makes mel frames of a language model's tokens."""
    evaluations = int(knobs["evaluations"])
    if not context.info.mel_steps:
        raise SettingError(
            f"{context.info.title} makes audio of its tokens without a flow; {TECHNIQUE.title} has nothing to shorten."
        )
    if not context.loaded:
        return plan
    try:
        weights = chosen(context.info, context.entry, evaluations)
    except NotPrepared as error:
        raise NotPrepared(str(error), plan, error.command) from None
    temperature = _temperature(knobs, weights)
    return replace(plan, mel_weights=weights, mel_evaluations=evaluations, mel_temperature=temperature)


def _temperature(knobs: Values, weights: IntervalWeights) -> float:
    return float(knobs["temperature"]) or weights.temperature


def _runs(plan: FlowPlan | LanguagePlan) -> TrainedWeights | None:
    return plan.mel_weights if isinstance(plan, LanguagePlan) else plan.weights


def describe(knobs: Values) -> str:
    """What runs, in words."""
    evaluations = knobs["evaluations"]
    chosen = f", temperature {temperature:g}" if (temperature := knobs["temperature"]) else ""
    return f"{evaluations} evaluation{'' if evaluations == 1 else 's'} in one branch{chosen}"


def _require_alone(context: Context, evaluations: int) -> None:
    """Raise :class:`SettingError` if something else decides about what these weights were trained on."""
    info, title = context.info, TECHNIQUE.title
    if info.trained_guidance is not None:
        raise SettingError(
            f"{info.title} has its guidance in its weights already (w = {info.trained_guidance:.2f}); {title} starts "
            "from the model that it was made from."
        )
    for slot in ("grid", "solver", "guidance"):
        if slot in context.taken:
            raise Conflict(
                f"{title} was trained on its own {evaluations} evaluation{'' if evaluations == 1 else 's'} with "
                f"guidance inside, so {context.title_in(slot)} has nothing to decide; do without one of the two.",
                slot,
            )
    if evaluations == 1 and "skipping" in context.taken:
        raise Conflict(
            f"With one evaluation there is no earlier one for {context.title_in('skipping')} to reuse; use two or more "
            "evaluations, or do without it.",
            "skipping",
        )


def chosen(info: ModelInfo, entry: UsedTechnique, evaluations: int) -> IntervalWeights:
    """The weights of the loaded model that ``entry`` uses: those that it names by fingerprint, else the first that
    were trained for this number of evaluations.

    Raises :class:`NotPrepared` that says what there is and how to come by others.
    """
    if entry.artefact:
        return named_weights(info.interval_weights, entry.artefact, "average-velocity weights", info)
    near = fitting(info, evaluations)
    if not near:
        raise NotPrepared(
            f"{info.title} has no average-velocity weights for {evaluations} "
            f"evaluation{'' if evaluations == 1 else 's'} yet; train some first." + other_checkpoint(info, "intervals"),
            command=to_type("train average-velocity --minutes 60 --work runs/average-velocity", info),
        )
    return near[0]


def fitting(info: ModelInfo, evaluations: int) -> tuple[IntervalWeights, ...]:
    """The loaded model's weights that were trained for this number of evaluations."""
    return tuple(one for one in info.interval_weights if evaluations <= one.evaluations)


def _remarks(weights: IntervalWeights, reference: Values) -> tuple[str, ...]:
    """That baseline and weights differ in guidance, if they do."""
    differing = [
        name for name, value in weights.guidance.items() if abs(float(reference[name]) - value) > UNEQUAL_GUIDANCE
    ]
    if not differing:
        return ()
    own = " and ".join(f"{name} {weights.guidance[name]:.3g}" for name in differing)
    baseline = " and ".join(f"{name} {float(reference[name]):.3g}" for name in differing)
    return (
        f"These weights include {own}, but the baseline runs with {baseline}: their takes differ in guidance, too. For "
        "a fair comparison, set the baseline to that.",
    )


def _knobs_of(one: TrainedWeights) -> dict[str, object]:
    """One set of weights serves all numbers of evaluations."""
    return {}


WEIGHTS = Weights(
    all_of=lambda info: info.interval_weights,
    fitting=lambda info, knobs: fitting(info, int(knobs["evaluations"])),
    knobs_of=_knobs_of,
    of=_runs,
    required=True,
)
TECHNIQUE = Technique(
    name=NAME,
    title="Average velocity",
    summary="Uses weights trained to go the way of many guided steps in one to four evaluations.",
    benefit="One to four evaluations instead of many",
    paper=Paper("IntMeanFlow: Few-step Speech Generation with Integral Velocity Distillation", "arXiv 2510.07979"),
    families=("flow", "language"),
    needs_mel_flow=True,
    slot="weights",
    place=25,
    mark=Mark("red", "diamond"),
    exports="paretone.techniques.average_velocity.exports",
    benches=(("few-evaluations", "paretone.techniques.average_velocity.bench"),),
    commands=("paretone.techniques.average_velocity.command",),
    jobs=(
        Job(
            "train",
            "Preparing speech",
            "paretone.techniques.average_velocity:AverageVelocityRequest",
            "paretone.techniques.average_velocity.fine_tuning:train",
            on_loaded_model=False,
            finds_weights=True,
            form="paretone.techniques.average_velocity.training_form:FORM",
        ),
    ),
    knobs=(
        Number(
            "evaluations",
            "Evaluations",
            "Evaluations from noise to speech, each in one branch. One set of weights serves all of these numbers; "
            "more keep more of the variety.",
            default=2,
            minimum=1,
            maximum=MOST_EVALUATIONS,
            whole=True,
        ),
        Number(
            "temperature",
            "Temperature",
            "Scale of the noise that a take starts from: with less, speech is calmer, more natural and less varied. 0: "
            f"{OF_WEIGHTS}, usually 1.",
            default=0.0,
            minimum=0.0,
            maximum=HIGHEST_TEMPERATURE,
            step=0.05,
            lowest=OF_WEIGHTS,
            later=True,
        ),
    ),
    resolve=resolve,
    describe=describe,
    weights=WEIGHTS,
)
