"""Declaration of a technique: identity, knobs, its change of a plan, its preparation, and further parts. Torch-free.

A technique is a plug-in. It lives in one file or folder (ours: ``engine/paretone/techniques/<name>``; a researcher's: a
package of their own), and the entry-point group ``paretone.techniques`` names its :class:`Technique`. Nothing else in
``engine`` or ``app`` knows it: the registry (:mod:`paretone.techniques.registry`) finds it,
:func:`paretone.techniques.resolve` lets it change the plan, and everything further is found through the fields of
:class:`Technique`. What needs torch is named as ``"package.module:function"`` and imported when it runs.
``resources/docs/your-own-technique.md`` is a tutorial."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from paretone.by_name import nearest
from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.models import catalogue
from paretone.models.base import MelFlow, ModelInfo, SpeechModel, TrainedWeights
from paretone.observer import Observer
from paretone.reading import shown
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Knob, Values
from paretone.setting.plan import NOTHING_TO_SKIP, Idle, NotPrepared, Plan
from paretone.setting.setting import Artefact, Published, Setting, UsedTechnique

AnyPlan = TypeVar("AnyPlan", bound=Plan)
AnyWeights = TypeVar("AnyWeights", bound=TrainedWeights)

SLOTS = tuple("passages grid solver weights guidance precision skipping blocks draft sampling launching".split())
"""Slots of a plan, in the order in which techniques resolve; other slots come last."""
GROUPS = {
    "Fewer evaluations": ("grid", "solver", "guidance", "sampling"),
    "Skipping": ("skipping",),
    "Weights": ("weights",),
    "Drafts": ("draft",),
    "Precision and kernels": ("precision", "launching"),
    "Streaming": ("passages", "blocks"),
    "Other": (),
}
"""Groups of techniques in lists, in their order, with the slots whose techniques belong there unless they say else."""
PARTS = {"weights": ("language",), "guidance": ("every", "running", "combining"), "draft": ("acceptance",)}
"""Parts of slots that several techniques may take. A plug-in may add others."""
_PART = re.compile(r"[a-z][a-z0-9_]*")
_MISSPELT = 0.85
"""Similarity to a known part from which a part counts as its misspelling."""


def fault_of_slot(name: str) -> str:
    """End of a sentence on a fault in ``name`` as a slot or part of one, or ``""``: misspelt parts exclude nothing."""
    slot, colon, part = name.partition(":")
    near, known = nearest(slot, SLOTS), PARTS.get(slot, ())
    if slot in SLOTS:
        near_part = nearest(part, known, _MISSPELT)
        if not colon or (_PART.fullmatch(part) and near_part in ("", part)):
            return ""
        near = f"{slot}:{near_part}" if near_part else slot
    return (
        f"{shown(name)}{f' (did you mean {near!r}?)' if near else ''}; it must be one of {', '.join(SLOTS)}, or one of "
        "them with a part of your own, such as 'sampling:mine'"
    )


@dataclass(frozen=True)
class Paper:
    title: str
    reference: str


@dataclass(frozen=True)
class Context:
    """Information for a technique when it resolves."""

    info: ModelInfo
    """The model. Not ``loaded``: the catalogue's information; layers, weights and devices are then unknown."""
    setting: Setting
    entry: UsedTechnique
    """The technique's entry in the setting: its given knobs and its artefact."""
    artefacts: tuple[Artefact, ...] = ()
    """Artefacts that the setting names by fingerprint."""
    loaded: bool = True
    taken: Mapping[str, Technique] = field(default_factory=dict)
    """The technique in each occupied slot, resolved or not."""
    speech: ModelInfo | None = None
    """The language model, if :attr:`info` is the flow after it."""

    def title_in(self, slot: str) -> str:
        """Title of the technique in ``slot``, or ``""``. Raises :class:`ValueError` for an impossible slot."""
        if fault := fault_of_slot(slot):
            raise ValueError(f"the slot is {fault}")
        return self.taken[slot].title if slot in self.taken else ""

    @property
    def artefact(self) -> Artefact | None:
        """The artefact of the technique's entry, if available."""
        return next((one for one in self.artefacts if one.fingerprint == self.entry.artefact), None)

    def compatibility(self, plan: Plan) -> Compatibility:
        """Compatibility required of an artefact under ``plan``."""
        info = self.info
        return Compatibility.of(info.id, plan.fingerprint, info.variant, info.knobs, plan.options)


class Conflict(SettingError):
    """Techniques that exclude each other by their ``slots``; the sentence names both."""

    def __init__(self, sentence: str, *slots: str) -> None:
        super().__init__(sentence)
        if fault := next(filter(None, map(fault_of_slot, slots)), ""):
            raise ValueError(f"the slot is {fault}")
        self.slots = slots


@dataclass(frozen=True)
class ArtefactType:
    """Storage of a technique's artefact in profiles. The functions are torch-free."""

    key: str
    """Its field in the file."""
    type: type
    read: Callable[[object, str], Any]
    """Reads plain JSON values; the second argument is the field's name for messages. Raises :class:`ProfileError`."""
    write: Callable[[Any], Any]
    """The artefact as plain JSON values."""
    check: Callable[[Any, UsedTechnique, Compatibility], None] = lambda artefact, entry, compatibility: None
    """Raises :class:`ProfileError`, naming the field, if artefact, entry and profile are inconsistent."""
    knobs: Callable[[Any, Values], Values] = lambda artefact, knobs: knobs
    """Overrides the technique's knobs with those fixed by the artefact."""


@dataclass(frozen=True)
class ArtefactFile:
    """Command-line option ``--option FILE`` for a technique's artefact."""

    option: str
    noun: str
    """Contents of the file, such as ``strategy table``."""
    meaning: str
    use: str
    """``"package.module:function"``, called with a setting, the loaded model, the file's path and the given knobs;
    returns the setting with the technique used, and its artefacts. Raises :class:`ProfileError`."""
    knobs: tuple[str, ...] = ()
    """Knobs for properties missing from foreign files."""
    made_by: str = ""
    """Command that writes such a file, without the model's options, such as ``calibrate --table table.json``."""


@dataclass(frozen=True)
class Weights:
    """Trained weights of a technique, among those found for a loaded model (``ModelInfo``)."""

    all_of: Callable[[ModelInfo], Sequence[TrainedWeights]]
    """All that it could run under any knobs."""
    fitting: Callable[[ModelInfo, Values], Sequence[TrainedWeights]]
    """Those that fit the knobs; a setting without a fingerprint takes the first."""
    knobs_of: Callable[[Any], Mapping[str, object]]
    """Values of the knobs that distinguish these weights."""
    of: Callable[[Any], TrainedWeights | None] = lambda plan: plan.weights
    """Weights that run under a resolved plan."""
    required: bool = False
    """Whether a profile must name them: without weights the technique does nothing."""


@dataclass(frozen=True)
class JobTask:
    """Arguments of a function that runs a preparation."""

    request: Any
    """Request of the technique, frozen and picklable."""
    observer: Observer
    model: SpeechModel | None
    """The loaded model, if the job runs on it."""
    machine: str = ""
    """One-line description of the machine."""
    created: str = ""
    """Time in UTC, ISO 8601."""

    @property
    def loaded(self) -> SpeechModel:
        """:attr:`model` of a job on the loaded model."""
        assert self.model is not None
        return self.model


@dataclass(frozen=True)
class Job:
    """One kind of preparation: calibrating, measuring, training. Requested by the command ``Prepare(job, technique,
    request)``; the executor finds the technique's job by the type of ``request``, runs ``run`` and posts
    ``Prepared(job, technique, result, info)`` with its result."""

    name: str
    """Such as ``calibrate``; unique within the technique."""
    title: str
    """Title, such as ``Calibrate``."""
    request: str
    """Type of its requests, ``"package.module:Class"``, torch-free; with a field ``setting`` if on the loaded model."""
    run: str
    """``"package.module:function"``, called with a :class:`JobTask`; returns a frozen and picklable result."""
    on_loaded_model: bool = True
    """Whether it runs on the loaded model (of ``request.setting``), or brings its own."""
    finds_weights: bool = False
    """Whether it may make weights, so that the loaded model must search again; ``Prepared.info`` then describes it."""
    form: str = ""
    """For trainings: ``"package.module:name"`` of a :class:`paretone.training.forms.TrainingForm`, for the panel
    Training. Requests are then :class:`paretone.training.requests.TrainingRequest`, reports ``TrainingProgress`` and
    the result ``Trained``, of the same module."""


def training_job(package: str, request: str, module: str) -> Job:
    """The job ``train`` of a technique's ``package``, which has the class ``request`` and the form ``FORM``; its
    function ``train`` is in ``module``."""
    names = f"{package}:{request}", f"{package}.{module}:train"
    return Job("train", "Preparing speech", *names, on_loaded_model=False, finds_weights=True, form=f"{package}:FORM")


@dataclass(frozen=True)
class Technique:
    """Declaration of one acceleration, for the application and the engine."""

    name: str
    """Short name in settings and profiles: lower case, with underscores."""
    title: str
    summary: str
    paper: Paper
    families: tuple[str, ...]
    knobs: tuple[Knob, ...]
    resolve: Callable[[Context, Values, Any], Any]
    """``resolve(context, knobs, plan) -> plan``: add this technique to the plan of the earlier ones, given all knobs.
    Raises :class:`SettingError` with a sentence if that is impossible, and :class:`paretone.setting.plan.NotPrepared`
    if only its preparation is missing."""
    slot: str = ""
    """Slot, usually one of :data:`SLOTS`: techniques of one slot exclude each other. ``slot:part`` resolves with
    ``slot`` and excludes only the same part; ``""`` excludes none."""
    options: tuple[str, ...] = ()
    """Sampler options that a model must have."""
    of_mel_flow: bool = False
    """Whether, on a language model, it changes the plan of the flow after it (:class:`paretone.models.base.MelFlow`);
    :attr:`resolve` then gets that plan and the flow as the model."""
    needs_single_codes: bool = False
    """Whether each token of a language model must be all that is decoded for it, not the first code of a frame."""
    describe: Callable[[Values], str] = lambda knobs: ""
    """Meaning of the knobs' values, in a few words."""
    benefit: str = ""
    """Benefit to the user, in about six words without a full stop, for narrow lists; default: the summary."""
    idle: Callable[[Values, Any], str] | None = None
    """Reason why a take that computed everything saved nothing, and what to do, as the end of a sentence without a full
    stop; called with all knobs and the plan. Only for techniques that decide at run time; those of the slot
    ``skipping`` have a default."""
    fixed_by_seed: Callable[[Values], bool] = lambda knobs: True
    """Whether with these knobs a seed gives the same take again, whatever the times that were measured."""
    improves: str = "real_time_factor"
    """Metric to improve, better if lower (see :mod:`paretone.measure.metrics`); lists show its last ratio."""
    experimental: bool = False
    """Whether it is unpublished for such models; lists show experiments separately, and the title says so."""
    little: Callable[[ModelInfo], str] = lambda info: ""
    """Sentence why it gains little for a loaded model on its device, or ``""``; lists then show it late."""
    group: str = ""
    """Its group in lists, one of :data:`GROUPS`; by default that of its slot."""
    place: int = 1000
    """Position in lists: smaller is earlier; ties by title."""
    mark: Mark | None = None
    """Colour and shape of its points in every figure. Ours declare theirs; a plug-in's follows from its name, so it is
    the same on installations without the plug-in (:mod:`paretone.techniques.registry`)."""
    lacking: Callable[[str], str | None] = lambda family: None
    """Reason why it is not offered for models of a family on any device, as a sentence, or ``None``."""
    needs: str = ""
    """Required features of the device; see :func:`paretone.device.lacking`."""
    artefact: ArtefactType | None = None
    artefact_file: ArtefactFile | None = None
    weights: Weights | None = None
    jobs: tuple[Job, ...] = ()
    commands: tuple[str, ...] = ()
    """Commands of the command line: modules as in :mod:`paretone.commands`, with ``NAME``, ``SUMMARY``,
    ``declare(parser)``, ``run(options, session)``, or ``"package.module:NAME"`` of a
    :class:`paretone.commands.command.Command`. A name of two words, ``train draft``, is a subcommand of ``train``."""
    benches: tuple[tuple[str, str], ...] = ()
    """Names and modules of benches, as in :mod:`paretone.bench`."""
    published: tuple[Published, ...] = ()
    """Its settings as published, in the order of lists."""
    views: tuple[str, ...] = ()
    """Views, as in :mod:`paretone.views`: modules with a ``VIEW``, or ``"package.module:NAME"`` of a
    :class:`paretone.views.view.View`."""
    study: str = ""
    """Module with hooks for studies: see :mod:`paretone.studies.hooks`."""
    exports: str = ""
    """Module with hooks for exports: see :mod:`paretone.export.targets`."""

    def not_offered(self, info: ModelInfo) -> str:
        """Reason why the model of ``info`` is not offered it, or its device cannot run it, as a sentence, or ``""``."""
        if self.needs_single_codes and info.codes_per_token > 1:
            return (
                f"{info.title} completes each token to a frame of {info.codes_per_token} codes before it reads the "
                f"next, which {self.title} does not know; do without it."
            )
        lacking = dict(info.lacking)
        return self.lacking(info.family) or lacking.get(self.needs, "") or lacking.get(self.main_slot, "")

    def runs_on(self, flow: MelFlow | None) -> bool:
        """Whether it can change the ``flow`` after a language model."""
        if flow is None or not {one.name for one in flow.options}.issuperset(self.options):
            return False
        return flow.transformer or self.main_slot != SKIPPING

    @property
    def listed_in(self) -> str:
        """Its group in lists."""
        return self.group or next((title for title, slots in GROUPS.items() if self.main_slot in slots), "Other")

    @property
    def main_slot(self) -> str:
        """The slot without its part."""
        return self.slot.partition(":")[0]

    @property
    def prepared_by(self) -> str:
        """``"calibration"`` (an artefact), ``"training"`` (weights) or ``""`` (nothing to prepare)."""
        return "calibration" if self.artefact else "training" if self.weights else ""


SKIPPING = "skipping"


def idle(technique: Technique, knobs: Values, plan: Plan) -> tuple[Idle, ...]:
    """Remarks of a take in which ``technique`` saves nothing under ``plan``; empty if that cannot happen."""
    if technique.idle is None and technique.main_slot != SKIPPING:
        return ()
    reason = "no step could be left out" if technique.idle is None else technique.idle(knobs, plan)
    if not isinstance(reason, str):
        raise TypeError(f"idle returned {type(reason).__name__} instead of a text")
    return (Idle(technique.main_slot, technique.title, reason),) if reason else ()


def no_fewer(plan: Plan) -> tuple[str, ...]:
    """Remark on a plan with no fewer steps than without techniques."""
    steps, own = plan.options["steps"], plan.reference["steps"]
    return () if steps < own else (f"{NOTHING_TO_SKIP}: {steps} steps are no fewer than the setting's own {own}.",)


def require_euler(options: Values, why: str) -> None:
    """Raise :class:`SettingError` for another solver than Euler's; ``why``: reason for it, as a clause."""
    if options.get("solver", "euler") != "euler":
        raise SettingError(f"{why}; choose the Euler solver.")


def require_whole(context: Context, plan: Plan, why: str) -> None:
    """Raise :class:`SettingError` if another technique computes evaluations partly; ``why``: reason for whole ones."""
    title = context.title_in("skipping")
    if title or plan.computes_in_part:
        raise Conflict(
            f"{title or 'Another technique'} computes another part of every evaluation, and {why}; choose one of them.",
            "skipping",
        )


def require_guidance(context: Context, branches: int, otherwise: str) -> None:
    """Raise :class:`Conflict` if guidance is off, or in the weights; ``otherwise``: what is then impossible."""
    if branches == 1:
        weights = context.title_in("weights")
        raise Conflict(
            f"{weights} weights {otherwise}. Do without one of the two."
            if weights
            else "Guidance is off; set a strength, or do without this technique.",
            "weights",
        )


def named_weights(there: Sequence[AnyWeights], fingerprint: str, kind: str, info: ModelInfo) -> AnyWeights:
    """The weights with this fingerprint, from ``there``; ``kind`` is their name in messages. Raises
    :class:`paretone.setting.plan.NotPrepared` if the loaded model has none."""
    for one in there:
        if one.fingerprint == fingerprint:
            return one
    raise NotPrepared(
        f"{info.title} lacks the {kind} {fingerprint[:12]!r} here; put the file next to the others, or train your own.",
        command=f"paretone models {info.id}",
    )


def to_type(command: str, info: ModelInfo) -> str:
    """``paretone COMMAND`` for the loaded model, with the model's folder before other options if it is not the usual
    one; ``""`` for a model outside the catalogue."""
    chosen = catalogue.find(info.id)
    if chosen is None:
        return ""
    root = Path(info.checkpoint).parent
    root = root.parent if chosen.weights and root.name == Path(chosen.weights).name else root
    elsewhere = bool(info.checkpoint) and root.is_dir() and root.resolve() != chosen.folder.resolve()
    name, _, options = command.partition(" --")
    place = f" --folder {shlex.quote(str(root))}" if elsewhere else ""
    return f"paretone {name} --model {info.id}{place}{f' --{options}' if options else ''}"


def other_checkpoint(info: ModelInfo, folder: str) -> str:
    """Note about weights made from another checkpoint, to append to a sentence."""
    path = next((Path(one) for one in info.foreign if Path(one).parent.name == folder), None)
    if path is None:
        return ""
    return f" {path} was made from another checkpoint than {info.title}'s and cannot be used with it."


def ordinal(number: int) -> str:
    """Ordinal after "every", from 2 on: second, third, 4th, 21st."""
    teens = number % 100 in (11, 12, 13)
    digits = f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
    return {2: "second", 3: "third"}.get(number, digits)
