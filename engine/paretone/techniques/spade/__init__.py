"""SPADE: structured pruning and adaptive distillation of a student with the most important layers.

Layers are removed by measured importance (:mod:`.importance`, :mod:`paretone.models.files.layer_importance`); the rest
speaks as it is, or is trained to replace the removed layers (:mod:`.training`). The student is the artefact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.models.base import ModelInfo, StudentWeights, Utterance
from paretone.models.catalogue import entry, find
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, WORD_ERROR, ImportanceRecord
from paretone.paths import in_own_place
from paretone.reading import shown
from paretone.setting.knobs import Choice, Effect, Number, Switch, Values, WholeNumbers, amount, count, whole_numbers
from paretone.setting.plan import LanguagePlan, NotPrepared
from paretone.setting.setting import Published, Setting, UsedTechnique
from paretone.techniques.base import (
    Context,
    Job,
    Paper,
    Technique,
    Weights,
    named_weights,
    other_checkpoint,
    to_type,
    training_job,
)
from paretone.training import forms
from paretone.training.requests import CompanionRequest, why_no_teacher
from paretone.wording import counted

MEASURED_SENTENCES = 8
"""Default number of sentences, in every voice, for measuring layers."""
WORDS, WHISPER = JUDGES = ("words", "whisper")
"""Judges of word errors: pocketsphinx, and Whisper as in the paper."""
IMPORTANCE: Mapping[str, tuple[str, str]] = {
    "word_error": (WORD_ERROR, WORDS),
    "whisper": (WORD_ERROR, WHISPER),
    "divergence": (DIVERGENCE, ""),
    "cosine": (COSINE, ""),
}
"""Measures that can select a student's layers, each with the judge that hears it."""
FOLLOWING, ORIGINAL = TARGETS = ("following", "original")
"""Layers to learn from: all up to the next retained one, or the original ones alone, the paper's ablation."""


@dataclass(frozen=True)
class ImportanceRequest:
    """Request to measure the importance of each layer of the loaded language model, and to store the record in the
    user's folder of the model. ``measures`` are from :data:`paretone.models.files.layer_importance.MEASURES`; the word
    error rate speaks ``utterances`` once without each layer, which is slow. The result is :class:`LayersMeasured`."""

    activity: ClassVar[str] = "measuring the layers"

    setting: Setting
    utterances: tuple[Utterance, ...]
    measures: tuple[str, ...] = ("divergence", "cosine")
    judge: str = WORDS
    """Judge of word errors, of :data:`JUDGES`."""


@dataclass(frozen=True)
class LayersMeasured:
    """Importance of each layer of a model; ``record`` is also in the file ``path``."""

    record: ImportanceRecord
    path: str


@dataclass(frozen=True, kw_only=True)
class Distillation:
    """Choices of the composite loss, and of the layers that it compares."""

    alpha: float = 0.25
    """α, the weight of the cross-entropy of spoken tokens; the four terms of distillation share the rest."""
    skew: float = 0.1
    """λ, the teacher's share in the skewed divergence."""
    attention_interval: int = 8
    """Steps between comparisons of attention, the smallest and most expensive term; 1: every step, as published."""
    attention_scale: float = 1.0
    """Factor on the attention term."""
    original_layers: bool = False
    """Whether every layer learns from the teacher's layer of its own number alone, the paper's ablation."""
    relative_latents: bool = True
    """Whether errors of layer outputs are relative to the teacher's size; false: as published."""
    importance: str = ""
    """Measure that selects the layers, of :data:`IMPORTANCE`, measured first if it was not yet; ``""``: by the existing
    measurement, else by divergence."""

    def __post_init__(self) -> None:
        for what, value in (("α", self.alpha), ("The skew λ", self.skew)):
            if not 0 <= value <= 1:
                raise SettingError(f"{what} must lie between 0 and 1, not be {value:g}.")
        if self.attention_interval < 1 or not 0 <= self.attention_scale < math.inf:
            raise SettingError(
                "Attention is compared every 1 or more steps, with a scale from 0, not every "
                f"{self.attention_interval} with {self.attention_scale:g}."
            )
        if self.importance and self.importance not in IMPORTANCE:
            raise SettingError(f"There is no importance {shown(self.importance)}; known: {', '.join(IMPORTANCE)}.")

    @property
    def distillation(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(Distillation)}

    @property
    def choices(self) -> dict[str, str]:
        """Choices that the student's metadata record and a resumed run must share."""
        others = ("original_layers", "relative_latents", "importance")
        return {
            **{name: f"{value:g}" for name, value in self.distillation.items() if name not in others},
            "targets": ORIGINAL if self.original_layers else FOLLOWING,
            "latents": "relative" if self.relative_latents else "published",
        }


@dataclass(frozen=True, kw_only=True)
class StudentRequest(Distillation, CompanionRequest):
    """Request to train a student with the ``retained`` layers, default: the ``depth`` most important ones by
    measurement. Also kept: the student after each of ``stages`` (minutes of the budget). The result is
    :class:`paretone.training.requests.Trained`."""

    depth: int | None = None
    """``None``: :func:`paretone.techniques.spade.fitting_depth`."""
    retained: tuple[int, ...] = ()
    stages: tuple[float, ...] = ()
    measured_sentences: int = MEASURED_SENTENCES
    """Sentences, in every voice, for measuring the importance."""


NAME = "spade"
RECOVERED, PARTLY, NONE = "recovered", "partly", "none"


def listed_layers(knobs: Values) -> tuple[int, ...]:
    """Layers chosen by hand, sorted, without duplicates."""
    return whole_numbers(str(knobs["layers"]))


def fitting_depth(layers: int) -> int:
    """Default number of layers of a student: half of ``layers``."""
    return max(1, layers // 2)


def kept_count(knobs: Values, layers: int) -> int:
    """Number of layers that ``knobs`` keep of a model with ``layers``."""
    return len(listed_layers(knobs)) or int(knobs["depth"]) or fitting_depth(layers)


def stage_title(stage: str) -> str:
    return dict(zip(_STAGES.values, _STAGES.titles, strict=True))[stage]


def describe(knobs: Values) -> str:
    kept = listed_layers(knobs)
    count = len(kept) or knobs["depth"]
    chosen = "selected by hand" if kept else f"the most important one{'s' * (count != 1)}"
    which = counted(count, "layer", "layers") if count else "half of the layers"
    return f"{which}, {chosen}, {stage_title(str(knobs['recovery'])).lower()}"


def resolve(context: Context, knobs: Values, plan: LanguagePlan) -> LanguagePlan:
    if not context.loaded:
        return plan
    info, entry = context.info, context.entry
    by_hand = listed_layers(knobs)
    if by_hand and by_hand[-1] >= info.layers:
        beyond = next(one for one in by_hand if one >= info.layers)
        raise SettingError(
            f"{info.title} has no layer {beyond}: its {info.layers} layers are numbered from 0 to {info.layers - 1}."
        )
    depth = kept_count(knobs, info.layers)
    if depth > info.layers:
        raise SettingError(f"{info.title} has {info.layers} layers, so it cannot keep {depth}; choose fewer.")
    if knobs["recovery"] == NONE:
        if not (by_hand or info.layer_order):
            raise NotPrepared(
                f"The importance of {info.title}'s layers has not been measured yet; measure it in the Layers panel, "
                "or list the layers to keep by hand.",
                command=to_type("measure-layers", info),
            )
        return replace(plan, layers=by_hand or tuple(sorted(info.layer_order[:depth])))
    student = _student(info, entry, knobs, by_hand, depth)
    return replace(plan, weights=student, fingerprint=student.fingerprint)


def _student(
    info: ModelInfo, entry: UsedTechnique, knobs: Values, by_hand: tuple[int, ...], depth: int
) -> StudentWeights:
    if entry.artefact:
        return named_weights(info.students, entry.artefact, f"student with {counted(depth, 'layer', 'layers')}", info)
    if depth == info.layers:
        raise SettingError(f"All {depth} layers of {info.title} are kept: there is nothing to prune; choose fewer.")
    fitting = fitting_students(info, knobs)
    if not fitting:
        if (model := find(info.id)) and not (model.teacher or info.students):
            raise SettingError(f"No student of {info.title} can be trained; hear it pruned: recovery=none.")
        kept = f"--layers {','.join(map(str, by_hand))}" if by_hand else f"--depth {depth}"
        which = f"the layers {', '.join(map(str, by_hand))}" if by_hand else counted(depth, "layer", "layers")
        if knobs.get("targets", FOLLOWING) == ORIGINAL:
            kept += " --original-layers"
            which += ", learned from the original layers,"
        state = stage_title(str(knobs["recovery"])).lower()
        there = ", ".join(f"{one.depth} ({_how_trained(one)})" for one in info.students)
        has = f"; there are some with {there}" if there else ""
        raise NotPrepared(
            f"No {state} student of {info.title} with {which} has been trained yet{has}; train one, or hear it "
            f"pruned.{other_checkpoint(info, 'students')}",
            command=to_type(f"train spade {kept} --minutes {_minutes(info):.0f} --work runs/student", info),
        )
    return fitting[0]


def fitting_students(info: ModelInfo, knobs: Values) -> tuple[StudentWeights, ...]:
    """Students of the loaded model that fit ``knobs``, longest trained first, but the user's own last."""
    if knobs["recovery"] == NONE:
        return ()
    partly, by_hand = knobs["recovery"] == PARTLY, listed_layers(knobs)
    depth = kept_count(knobs, info.layers)
    found = [
        one
        for one in info.students
        if one.recovered != partly
        and (one.retained == by_hand if by_hand else one.depth == depth)
        and one.targets == knobs.get("targets", FOLLOWING)
    ]
    return tuple(sorted(found, key=lambda one: (in_own_place(one.path, info.id), -one.minutes)))


def _how_trained(student: StudentWeights) -> str:
    original = ", original layers" if student.targets == ORIGINAL else ""
    if student.recovered or not student.minutes:
        return stage_title(RECOVERED if student.recovered else PARTLY).lower() + original
    return f"{student.minutes:g} minute{'s' * (student.minutes != 1)} of training{original}"


_STAGES = Choice(
    "recovery",
    "Recovery",
    "Training of the remaining layers: none (hear pruning alone), some minutes of distillation, or the fully trained "
    "student.",
    default=RECOVERED,
    values=(NONE, PARTLY, RECOVERED),
    titles=("Pruned", "Briefly retrained", "Fully retrained"),
)

_MODELS = ("CosyVoice2-0.5B", "Llasa-1B")
_HALF = Values(depth=0, recovery=RECOVERED, layers="", targets=FOLLOWING)
_TRAINED = (
    "How the student was trained is not among the knobs; as in the paper: paretone train spade --importance whisper "
    "--attention-interval 1 --published-latents --sentences 0 --manifest FILE --epochs N --work FOLDER."
)
_PUBLISHED = (
    Published("half", "table 1a", _MODELS, _HALF, remark=_TRAINED),
    Published("9-layers", "table 1a", _MODELS[:1], _HALF.replace(depth=9), remark=_TRAINED),
    Published("original-layers", "table 2", _MODELS[:1], _HALF.replace(targets=ORIGINAL), remark=_TRAINED),
)
TECHNIQUE = Technique(
    name=NAME,
    title="SPADE (fewer layers)",
    summary="Removes the least important layers; a student distilled from the whole model speaks instead.",
    benefit="A student with fewer layers speaks",
    paper=Paper("SPADE: Structured Pruning and Adaptive Distillation for Efficient LLM-TTS", "arXiv 2509.20802"),
    families=("language",),
    slot="weights:language",
    place=170,
    mark=Mark("green", "diamond"),
    exports=f"{__name__}.importance",
    study=f"{__name__}.importance",
    benches=(("spade", f"{__name__}.bench"),),
    views=(f"{__name__}.views:LAYER_IMPORTANCE", f"{__name__}.views:DEPTH"),
    commands=(f"{__name__}.commands:MEASURE_LAYERS", f"{__name__}.commands:TRAIN"),
    jobs=(
        Job(
            "importance",
            "Measuring the layers",
            f"{__name__}:ImportanceRequest",
            f"{__name__}.training:importance",
            finds_weights=True,
        ),
        training_job(__name__, "StudentRequest", "training"),
    ),
    knobs=(
        count(
            "depth",
            "Layers kept",
            "Number of layers to keep; 0: half of the model's. A retrained student must be trained for each number; "
            "pruned takes any.",
            default=0,
            between=(0, 64),
            lowest="half of the layers",
        ),
        _STAGES,
        WholeNumbers(
            "layers",
            "Layers by hand",
            "Numbers of the layers to keep, from 0, separated by commas; leave empty for the most important ones by "
            "measurement. Overrides the number above.",
            default="",
            wanted="layer numbers separated by commas, such as 0,1,5",
        ),
        Choice(
            "targets",
            "Learned from",
            "Layers of the whole model that each layer of the student learned from: its own and the removed ones after "
            "it, or its own alone (the paper's ablation, to be trained).",
            default=FOLLOWING,
            values=TARGETS,
            titles=("Removed layers, too", "Original layers"),
            later=True,
        ),
    ),
    # Also under CosyVoice 2's rule for repeated tokens when the paper was written.
    published=(*_PUBLISHED, *(replace(one, options=Values(repeats="2025")) for one in _PUBLISHED)),
    resolve=resolve,
    describe=describe,
    weights=Weights(
        all_of=lambda info: info.students,
        fitting=fitting_students,
        knobs_of=lambda one: {
            "depth": one.depth,
            "recovery": RECOVERED if one.recovered else PARTLY,
            "layers": "",
            "targets": one.targets,
        },
    ),
)


_minutes = forms.minutes_by_size(45.0)


def _request(place: forms.Place, plan: forms.TrainingPlan) -> StudentRequest:
    knobs, stage = plan.knobs, float(plan.knobs["stage"])
    chosen = {one.name: knobs[one.name] for one in fields(Distillation)}
    return StudentRequest(
        depth=int(knobs["depth"]),
        retained=listed_layers(knobs),
        **{**chosen, "importance": "" if chosen["importance"] == MEASURED else chosen["importance"]},
        stages=(stage,) if 0 < stage < plan.minutes else (),
        **forms.companion_arguments(place, plan),
    )


def _kept(knobs: Values) -> str:
    if layers := listed_layers(knobs):
        return f"Keeps layers {', '.join(map(str, layers))}."
    kept = f"Keeps the {knobs['depth']} most important layers by measurement."
    if IMPORTANCE.get(str(knobs["importance"]), ("", ""))[0] != WORD_ERROR:
        return kept
    return (
        f"{kept} Unless that is measured already, the model first says {MEASURED_SENTENCES} sentences in every voice, "
        "with all layers and again without each."
    )


def _estimate(info: ModelInfo, spoken: bool) -> str:
    learnt = max((one.minutes for one in info.students if one.recovered), default=0.0)
    if learnt:
        return f"The present student was trained for {forms.lasting(learnt)} of one CPU core."
    return forms.scaled_estimate(info, _minutes(info))


MEASURED = "measured"


def _share(name: str, title: str, symbol: str, default: float, meaning: str) -> Number:
    return amount(name, title, meaning, default, (0.0, 1.0), symbol=symbol, step=0.05, effect=Effect.AFTER_TRAINING)


FORM = forms.TrainingForm(
    name=TECHNIQUE.name,
    title="Student (SPADE)",
    families=TECHNIQUE.families,
    intro="Trains a student with only some of the loaded model's layers, which learns to replace the removed ones, by "
    "SPADE's composite loss. It learns from speech that the model generates; a manifest of recordings is optional.",
    knobs=(
        # Always a number, unlike the technique's knob: here half of the model's layers is a number, too.
        count(
            "depth",
            "Layers kept",
            "Number of layers that the student keeps: the most important ones. At first half of the loaded model's.",
            default=6,
            between=(1, 64),
        ),
        forms.knob_of(TECHNIQUE.knobs, "layers"),
        amount(
            "stage",
            "Early student after",
            "Also keep the student after this many minutes, to compare with the fully retrained one; 0 for none.",
            default=5.0,
            between=(0.0, 100_000.0),
            unit="min",
            effect=Effect.AFTER_TRAINING,
        ),
        Choice(
            "importance",
            "Importance",
            "Measure that selects the layers, measured first if it was not yet. Word errors without each layer are the "
            "paper's (by Whisper); cosine is its ablation. As measured: word errors if they were measured, layers that "
            "they cannot tell apart by divergence.",
            default=MEASURED,
            values=(MEASURED, *IMPORTANCE),
            titles=("As measured", "Word errors (pocketsphinx)", "Word errors (Whisper)", "Divergence", "Cosine"),
            effect=Effect.AFTER_TRAINING,
        ),
        _share("alpha", "Weight of the cross-entropy", "α", 0.25, "The four terms of distillation share the rest."),
        _share("skew", "Skew", "λ", 0.1, "Share of the whole model's probabilities in those compared with its own."),
        forms.count_knob(
            "attention_interval",
            "Attention every",
            "Steps between comparisons of attention, the smallest and most expensive term; 1 as published.",
            8,
            1_000,
            least=1,
        ),
        amount(
            "attention_scale",
            "Attention scale",
            "Factor on the attention term; 1 as published.",
            default=1.0,
            between=(0.0, 10_000.0),
            effect=Effect.AFTER_TRAINING,
        ),
        Switch(
            "original_layers",
            "Learn from original layers",
            "Every layer learns from the whole model's layer of its own number, the paper's ablation. Off: also from "
            "the removed layers after it.",
            default=False,
            effect=Effect.AFTER_TRAINING,
        ),
        Switch(
            "relative_latents",
            "Relative layer errors",
            "Errors of layer outputs as shares of the whole model's size (ours). Off: as published.",
            default=True,
            effect=Effect.AFTER_TRAINING,
        ),
        forms.SENTENCES,
    ),
    found=(forms.Figure("divergence", "divergence from the whole model, nats", share=False), *forms.TOKEN_FIGURES),
    progress="At step {step} the student is {found} nats from the whole model.",
    request=_request,
    minutes=_minutes,
    folder=lambda model, knobs: f"{model}-student-{len(listed_layers(knobs)) or knobs['depth']}",
    fitting=lambda info: {"depth": fitting_depth(info.layers)},
    remark=_kept,
    why_not=lambda info: why_no_teacher(entry(info.id)),
    estimate=_estimate,
    ready=lambda figures: (
        {"depth": int(figures["layers"]), "recovery": RECOVERED, "targets": figures.get("targets", FOLLOWING)},
        f"A student with {figures['layers']} layers is ready: switch SPADE on.",
    ),
)
