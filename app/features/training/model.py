"""What can be trained: each training with its knobs, what it asks the engine for, and what its figures mean.

Adding a training means declaring it here; the panel builds its form and its curves from the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.models.base import ModelInfo
from engine.session.messages import Command, TrainBundledModel, TrainDraft, TrainGuidanceFree, TrainStudent
from engine.setting.knobs import Choice, Effect, Knob, Number, Text, Values
from engine.techniques import guidance_free, spade, speculative

METHODS = (
    ("model-guidance", "Model guidance (papers)", "The target follows the trained model's own guided velocity."),
    ("distillation", "Distillation (ours)", "The target is the guided velocity of the frozen model."),
)
LM_MINI_PARAMETERS, MEASURED_LAYERS = 10_100_000, 12
MEASURED_MINUTES, MEASURED_PARAMETERS = 20.0, 8_200_000
"""What the shipped CFG-free weights of the bundled model for w = 0.5 took on one processor core with bfloat16; a step's
work grows with the number of parameters."""


@dataclass(frozen=True)
class Plan:
    """What the user wants trained."""

    training: str
    """The name of the :class:`Training`."""
    manifest: str
    work: str
    minutes: float
    half_precision: bool
    resume: bool
    knobs: Values
    """The training's own."""
    rate_scale: float = 1.0
    """On the usual learning rates."""


@dataclass(frozen=True)
class Place:
    """The model that is trained, as :class:`engine.session.messages.LoadModel` names it."""

    model: str
    folder: str
    variant: str
    device: str


@dataclass(frozen=True)
class Found:
    """One figure of a validation, as a curve."""

    name: str
    """Its name in :class:`engine.session.messages.TrainingProgress`."""
    title: str
    share: bool = True
    """Whether it is shown in per cent."""

    def wording(self, value: float) -> str:
        """The value as people read it."""
        return f"{value:.0%}" if self.share else f"{value:.3g}"


@dataclass(frozen=True)
class Training:
    """One training, as the panel shows it and the engine is asked for it."""

    name: str
    title: str
    families: tuple[str, ...]
    intro: str
    knobs: tuple[Knob, ...]
    found: tuple[Found, ...]
    """The figures of its validations that are drawn, at most three, the most telling one first."""
    progress: str
    """A sentence about a validation, with ``{step}`` and the words for its first figure, ``{found}``."""
    command: Callable[[int, Place, Plan], Command]
    minutes: Callable[[ModelInfo], float]
    """How long it usually takes on a processor."""
    folder: Callable[[str, Values], str]
    """A name for the work folder, of the model's name and the knobs."""
    fitting: Callable[[ModelInfo], Mapping[str, object]] = lambda info: {}
    """Values of its knobs that fit the model better than the defaults."""
    takes_manifest: bool = True
    """Whether recordings can be given."""
    needs_manifest: bool = False
    remark: Callable[[Values], str] = lambda knobs: ""
    """What the knobs come to, as a sentence."""


def _guidance_free(job: int, place: Place, plan: Plan) -> Command:
    return TrainGuidanceFree(
        job,
        place.model,
        plan.manifest,
        plan.work,
        float(plan.knobs["weight"]),
        str(plan.knobs["method"]),
        folder=place.folder,
        variant=place.variant,
        **_run(place, plan),
    )


def _draft(job: int, place: Place, plan: Plan) -> Command:
    return TrainDraft(
        job,
        place.model,
        plan.work,
        lower=int(plan.knobs["lower"]),
        upper=int(plan.knobs["upper"]),
        **_companion(place, plan),
    )


def _student(job: int, place: Place, plan: Plan) -> Command:
    stage = float(plan.knobs["stage"])
    return TrainStudent(
        job,
        place.model,
        plan.work,
        depth=int(plan.knobs["depth"]),
        retained=spade.parsed_layers(str(plan.knobs["layers"])),
        stages=(stage,) if 0 < stage < plan.minutes else (),
        **_companion(place, plan),
    )


def _bundled(recipe: str) -> Callable[[int, Place, Plan], Command]:
    def command(job: int, place: Place, plan: Plan) -> Command:
        return TrainBundledModel(
            job,
            recipe,
            plan.work,
            sentences=int(plan.knobs["sentences"]),
            codec=str(plan.knobs.get("codec", "")),
            **_run(place, plan),
        )

    return command


def _companion(place: Place, plan: Plan) -> dict[str, Any]:
    """What all trainings of a smaller companion are asked alike."""
    return {
        "sentences": int(plan.knobs["sentences"]),
        "manifest": plan.manifest,
        "folder": place.folder,
        "variant": place.variant,
        **_run(place, plan),
    }


def _run(place: Place, plan: Plan) -> dict[str, Any]:
    """What all trainings are asked alike."""
    return {
        "minutes": plan.minutes,
        "resume": plan.resume,
        "half_precision": plan.half_precision,
        "rate_scale": plan.rate_scale,
        "device": place.device,
    }


def _guidance(knobs: Values) -> str:
    weight = float(knobs["weight"])
    return f"Stands for guidance g = w / (1 − w) = {weight / (1 - weight):.2f}."


def _by_parameters(info: ModelInfo) -> float:
    return max(1.0, round(MEASURED_MINUTES * info.parameters / MEASURED_PARAMETERS))


def _by_size(minutes: float) -> Callable[[ModelInfo], float]:
    """``minutes`` of LM mini, and as much more as another model is larger."""
    return lambda info: max(minutes, round(minutes * info.parameters / LM_MINI_PARAMETERS))


def _knob(knobs: tuple[Knob, ...], name: str) -> Knob:
    return next(one for one in knobs if one.name == name)


def _count(name: str, title: str, meaning: str, default: int, most: int, least: int = 0) -> Number:
    return Number(
        name,
        title,
        meaning,
        default=default,
        minimum=least,
        maximum=most,
        whole=True,
        effect=Effect.AFTER_TRAINING,
    )


_SENTENCES = _count(
    "sentences",
    "Generated sentences",
    "Number of sentences per voice that the model generates as training speech; 0: only the manifest's recordings.",
    600,
    100_000,
)
_BOTH = (Found("same_first", "same top choice as the whole model"), Found("correct", "predicts the spoken token"))

GUIDANCE_FREE = Training(
    name=guidance_free.NAME,
    title="CFG-free weights",
    families=guidance_free.TECHNIQUE.families,
    intro="Trains weights of the loaded model in which one branch replaces the two of classifier-free guidance. "
    "A manifest is a CSV file with the columns audio and text.",
    knobs=(
        _knob(guidance_free.TECHNIQUE.knobs, "weight"),
        Choice(
            "method",
            "Method",
            " ".join(f"{title}: {meaning}" for _, title, meaning in METHODS),
            default=METHODS[0][0],
            values=tuple(name for name, _, _ in METHODS),
            titles=tuple(title for _, title, _ in METHODS),
            effect=Effect.AFTER_TRAINING,
        ),
    ),
    found=(Found("learnt", "guidance learned"), Found("gap", "gap to the guided velocity")),
    progress="At step {step} one branch has learned {found} of the guidance.",
    command=_guidance_free,
    minutes=_by_parameters,
    folder=lambda model, knobs: f"{model}-w-{float(knobs['weight']):.2f}",
    needs_manifest=True,
    remark=_guidance,
)
DRAFT = Training(
    name=speculative.NAME,
    title="Draft for SSD",
    families=speculative.TECHNIQUE.families,
    intro="Trains a small draft of the loaded model, which proposes tokens for speculative decoding. Its lowest layers "
    "and the head are trained, the topmost layers stay frozen. It learns from speech that the model generates; "
    "a manifest of recordings (a CSV file with the columns audio and text) is optional.",
    knobs=(
        _count("lower", "Lowest layers, trained", "Number of the lowest layers in the draft.", 2, 16, 1),
        _count("upper", "Topmost layers, kept", "Number of the topmost layers in the draft, unchanged.", 0, 16),
        _SENTENCES,
    ),
    found=(Found("acceptance", "drafts accepted"), *_BOTH),
    progress="At step {step} the model would accept {found} of the drafted tokens.",
    command=_draft,
    minutes=_by_size(15.0),
    folder=lambda model, knobs: f"{model}-draft-{knobs['lower']}-{knobs['upper']}",
    # A quarter of the layers, as published; of a dozen or fewer none, where layers are what a draft costs.
    fitting=lambda info: {"upper": 0 if info.layers <= MEASURED_LAYERS else info.layers // 4},
)
STUDENT = Training(
    name=spade.NAME,
    title="Student (SPADE)",
    families=spade.TECHNIQUE.families,
    intro="Trains a student with only some of the loaded model's layers, which learns to replace the removed ones, by "
    "SPADE's composite loss. It learns from speech that the model generates; a manifest of recordings is optional.",
    knobs=(
        _knob(spade.TECHNIQUE.knobs, "depth"),
        _knob(spade.TECHNIQUE.knobs, "layers"),
        Number(
            "stage",
            "Early student after",
            "Also keep the student after this many minutes, to compare with the recovered one; 0 for none.",
            default=5.0,
            unit="min",
            minimum=0.0,
            maximum=100_000.0,
            effect=Effect.AFTER_TRAINING,
        ),
        _SENTENCES,
    ),
    found=(Found("divergence", "divergence from the whole model, nats", share=False), *_BOTH),
    progress="At step {step} the student is {found} nats from the whole model.",
    command=_student,
    minutes=_by_size(45.0),
    folder=lambda model, knobs: f"{model}-student-{_depth(knobs)}",
    fitting=lambda info: {"depth": max(1, info.layers // 2)},
    remark=lambda knobs: _kept(knobs),
)
_FLITE = (
    "It learns from speech by the program flite, synthesised first into the folder corpus next to the "
    "work folder; the model that is loaded is not touched."
)
_CORPUS = _count(
    "sentences",
    "Sentences per voice",
    "Number of training sentences by flite, in each of two voices.",
    3_400,
    20_000,
    40,
)


def _from_nothing(
    recipe: str,
    title: str,
    family: str,
    intro: str,
    minutes: float,
    found: tuple[Found, ...],
    progress: str,
    knobs: tuple[Knob, ...] = (),
) -> Training:
    """A model that is made by ``recipe`` from what flite speaks."""
    return Training(
        name=recipe,
        title=f"{title} (from nothing)",
        families=(family,),
        intro=f"{intro} {_FLITE}",
        knobs=(*knobs, _CORPUS),
        found=found,
        progress=progress,
        command=_bundled(recipe),
        minutes=lambda info: minutes,
        folder=lambda model, knobs: f"{recipe}-from-nothing",
        takes_manifest=False,
    )


def _codec(what: str) -> Text:
    """Where the codec is that a model from nothing speaks through."""
    return Text(
        "codec",
        what.capitalize(),
        f"Folder of a {what} that was made here (its folder export); empty for the bundled one.",
        default="",
        effect=Effect.AFTER_TRAINING,
        longest=1_000,
    )


_COPIES = (Found("mel", "error of copies, log mel", share=False), Found("phones", "phones known from the codes"))
_COPIED = "At step {step} copies of held-out speech are {found} from it in log mel."
_CROSS_ENTROPY = Found("cross_entropy", "cross-entropy of held-out speech, nats", share=False)
_PREDICTED = "At step {step} the cross-entropy of held-out speech is {found} nats."
TOKENIZER = _from_nothing(
    "speech-tokenizer",
    "Speech tokenizer",
    "language",
    "Makes the bundled language model's speech tokenizer: mel frames to one code of 1,920 for every two, and back.",
    20.0,
    (*_COPIES, Found("codes", "codes in use", share=False)),
    _COPIED,
)
LANGUAGE_MODEL = _from_nothing(
    "lm-mini",
    "LM mini",
    "language",
    "Makes a language model like the bundled one, which speaks through a speech tokenizer. To hear it, load LM mini "
    "from the folder that is made.",
    50.0,
    (_CROSS_ENTROPY, Found("first", "predicts the spoken token"), Found("among_ten", "has it among ten")),
    _PREDICTED,
    (_codec("tokenizer"),),
)
CODEC = _from_nothing(
    "codec-mini",
    "Codec",
    "masked",
    "Makes the bundled masked model's codec: four mel frames to one code in each of eight codebooks, and back.",
    9.0,
    (*_COPIES, Found("codes", "codes in use", share=False)),
    _COPIED,
)
MASKED_MODEL = _from_nothing(
    "omni-mini",
    "Omni mini",
    "masked",
    "Makes a masked model like the bundled one, which fills in a canvas of codes. To hear it, load Omni mini from the "
    "folder that is made.",
    35.0,
    (_CROSS_ENTROPY, Found("first", "knows the first codebook"), Found("second", "knows the second")),
    _PREDICTED,
    (_codec("codec"),),
)
TRAININGS = (GUIDANCE_FREE, DRAFT, STUDENT, TOKENIZER, LANGUAGE_MODEL, CODEC, MASKED_MODEL)


def training(name: str) -> Training:
    """The training called ``name``."""
    return next(one for one in TRAININGS if one.name == name)


def lasting(minutes: float) -> str:
    """How long ``minutes`` are, in words."""
    return f"{minutes:.0f} minute{'' if minutes == 1 else 's'}" if minutes < 120 else f"{minutes / 60:.0f} hours"


def _depth(knobs: Values) -> int:
    return len(spade.parsed_layers(str(knobs["layers"]))) or int(knobs["depth"])


def _kept(knobs: Values) -> str:
    layers = spade.parsed_layers(str(knobs["layers"]))
    listed = ", ".join(map(str, layers))
    return f"Keeps layers {listed}." if layers else f"Keeps the {knobs['depth']} most important layers by measurement."
