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
from paretone.models.base import ModelInfo, SpeechModel, TrainedWeights
from paretone.models.catalogue import MODELS
from paretone.observer import Observer
from paretone.reading import shown
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Knob, Values
from paretone.setting.plan import NOTHING_TO_SKIP, Idle, NotPrepared, Plan
from paretone.setting.setting import Artefact, Setting, UsedTechnique

AnyPlan = TypeVar("AnyPlan", bound=Plan)
AnyWeights = TypeVar("AnyWeights", bound=TrainedWeights)

SLOTS = (
    "passages",
    "grid",
    "solver",
    "weights",
    "guidance",
    "precision",
    "skipping",
    "blocks",
    "draft",
    "sampling",
    "launching",
)
"""Slots of a plan, in the order in which techniques resolve; other slots come last."""
PARTS = {"weights": ("language",), "guidance": ("every", "running", "combining"), "draft": ("acceptance",)}
"""Parts of slots that several techniques may take. A plug-in may add others."""
_PART = re.compile(r"[a-z][a-z0-9_]*")
_MISSPELT = 0.85
"""Likeness to a known part from which a part is taken for it."""


def fault_of_slot(name: str) -> str:
    """Why a slot or a part of one cannot be called ``name``, as the end of a sentence, or ``""``. A misspelt part would
    exclude nothing."""
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
    """The model. Not ``loaded``: what the catalogue says of it; layers, weights and devices are then unknown."""
    setting: Setting
    entry: UsedTechnique
    """The technique's own place in the setting: its knobs as they were given, and its artefact."""
    artefacts: tuple[Artefact, ...] = ()
    """Artefacts that the setting names by fingerprint."""
    loaded: bool = True
    taken: Mapping[str, Technique] = field(default_factory=dict)
    """The technique in each slot that is taken, whether it has resolved yet or not."""

    def title_in(self, slot: str) -> str:
        """The title of the technique in use that takes ``slot``, or ``""``. Raises :class:`ValueError` for a slot that
        cannot be."""
        if fault := fault_of_slot(slot):
            raise ValueError(f"the slot is {fault}")
        return self.taken[slot].title if slot in self.taken else ""

    @property
    def artefact(self) -> Artefact | None:
        """The artefact that the technique's entry names, if it is at hand."""
        return next((one for one in self.artefacts if one.fingerprint == self.entry.artefact), None)

    def compatibility(self, plan: Plan) -> Compatibility:
        """Compatibility required of an artefact under ``plan``."""
        info = self.info
        return Compatibility.of(info.id, plan.fingerprint, info.variant, info.knobs, plan.options)


class Conflict(SettingError):
    """A technique that cannot be used with what takes other ``slots``: the sentence belongs to both."""

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
    """Its class."""
    read: Callable[[object, str], Any]
    """Reads plain JSON values; also given the field's name for messages. Raises :class:`ProfileError`."""
    write: Callable[[Any], Any]
    """The artefact as plain JSON values."""
    check: Callable[[Any, UsedTechnique, Compatibility], None] = lambda artefact, entry, compatibility: None
    """Raises :class:`ProfileError` that names the field where artefact, entry and profile do not belong together."""
    knobs: Callable[[Any, Values], Values] = lambda artefact, knobs: knobs
    """The technique's knobs as the artefact has fixed them."""


@dataclass(frozen=True)
class ArtefactFile:
    """An option of the command line that gives a technique's artefact as a file, ``--option FILE``."""

    option: str
    noun: str
    """Contents of the file, such as ``strategy table``."""
    meaning: str
    """The option's help."""
    use: str
    """``"package.module:function"``, called with a setting, the loaded model, the file's path and the knobs that were
    given; returns the setting with the technique used, and its artefacts. Raises :class:`ProfileError`."""
    knobs: tuple[str, ...] = ()
    """The knobs that say what such a file of others' does not."""
    made_by: str = ""
    """The command that writes such a file, with its options but not the model's, such as ``calibrate --table
    table.json``."""


@dataclass(frozen=True)
class Weights:
    """Trained weights that a technique runs, among those that a loaded model has found (``ModelInfo``)."""

    all_of: Callable[[ModelInfo], Sequence[TrainedWeights]]
    """All that it could run under some knobs."""
    fitting: Callable[[ModelInfo, Values], Sequence[TrainedWeights]]
    """Those that fit the knobs; a setting that names none takes the first."""
    knobs_of: Callable[[Any], Mapping[str, object]]
    """The values of the knobs that distinguish these weights."""
    of: Callable[[Any], TrainedWeights | None] = lambda plan: plan.weights
    """Those that run under a resolved plan."""
    required: bool = False
    """Whether a profile must name them: without them the technique does nothing."""


@dataclass(frozen=True)
class JobTask:
    """Arguments of the function that carries out a preparation."""

    request: Any
    """The technique's own, frozen and picklable."""
    observer: Observer
    model: SpeechModel | None
    """The loaded model, where the job runs on it."""
    machine: str = ""
    """The machine in a line."""
    created: str = ""
    """UTC, ISO 8601."""

    @property
    def loaded(self) -> SpeechModel:
        """:attr:`model`, of a job that runs on the loaded one."""
        assert self.model is not None
        return self.model


@dataclass(frozen=True)
class Job:
    """One kind of preparation: calibrating, measuring, training.

    The command ``Prepare(job, technique, request)`` asks for it; the executor finds the technique's job by the type of
    ``request``, runs ``run`` and posts ``Prepared(job, technique, result, info)`` with what that returns.
    """

    name: str
    """Such as ``calibrate``; unique within the technique."""
    title: str
    """Title, such as ``Calibrate``."""
    request: str
    """The type of its requests, ``"package.module:Class"``, torch-free. A request that runs on the loaded model has the
    field ``setting``."""
    run: str
    """``"package.module:function"``, called with a :class:`JobTask`; returns the result, frozen and picklable."""
    on_loaded_model: bool = True
    """Whether it runs on the loaded model (of ``request.setting``), or brings its own."""
    finds_weights: bool = False
    """Whether there may be new weights afterwards, so that the loaded model has to look for them; ``Prepared.info`` is
    what it then says of itself."""
    form: str = ""
    """Of a training: ``"package.module:name"`` of its form, a :class:`paretone.training.forms.TrainingForm`, with which
    the panel Training offers it. Its requests are then :class:`paretone.training.requests.TrainingRequest`, its reports
    ``TrainingProgress`` and its result ``Trained``, of the same module."""


@dataclass(frozen=True)
class Technique:
    """One acceleration, as the application shows it and the engine applies it."""

    name: str
    """Short, lower case, with underscores; settings and profiles name it so."""
    title: str
    summary: str
    paper: Paper
    families: tuple[str, ...]
    knobs: tuple[Knob, ...]
    resolve: Callable[[Context, Values, Any], Any]
    """``resolve(context, knobs, plan) -> plan``: the plan with this technique, given all knobs and the plan of those
    that come before it. Raises :class:`SettingError` with a sentence if it cannot be, and
    :class:`paretone.setting.plan.NotPrepared` where only its preparation is missing."""
    slot: str = ""
    """Slot, usually one of :data:`SLOTS`: two techniques of one slot exclude each other. ``slot:part`` resolves with
    ``slot`` and excludes only its like; ``""`` excludes none."""
    options: tuple[str, ...] = ()
    """The sampler options that a model must have for it."""
    needs_mel_flow: bool = False
    """Whether language models must have a flow that makes mel frames of their tokens for it (``mel_steps``)."""
    describe: Callable[[Values], str] = lambda knobs: ""
    """Meaning of the knobs' values, in a few words."""
    benefit: str = ""
    """What it does for the user, in some six words without a full stop, for lists that are narrow; by default the
    summary."""
    idle: Callable[[Values, Any], str] | None = None
    """Why it saved nothing in a take that computed everything, and what to do, as the end of a sentence without a full
    stop: called with all knobs and the plan. Only for techniques that decide while they run; for those of the slot
    ``skipping`` there is a default."""
    improves: str = "real_time_factor"
    """Name of the metric that it is for, one that is better if lower (see :mod:`paretone.measure.metrics`): lists show
    the last measured ratio of it."""
    experimental: bool = False
    """Whether nobody has published it for such models; lists show experiments apart, and the title says so."""
    little: Callable[[ModelInfo], str] = lambda info: ""
    """Why it gains little for a loaded model on its device, as a sentence, or ``""``; lists show it late then."""
    place: int = 1000
    """Position in lists: smaller is earlier; ties by title."""
    mark: Mark | None = None
    """Colour and shape of its points in every figure. Ours declare theirs; a plug-in's follows from its name, so that
    it is the same where the plug-in is not installed (:mod:`paretone.techniques.registry`)."""
    lacking: Callable[[str], str | None] = lambda family: None
    """Why it is not offered for models of a family on any device, as a sentence, or ``None``."""
    needs: str = ""
    """Required features of the device; see :func:`paretone.device.lacking`."""
    artefact: ArtefactType | None = None
    """Artefact that is prepared for it and kept in profiles."""
    artefact_file: ArtefactFile | None = None
    """File of the artefact for the command line."""
    weights: Weights | None = None
    """Which trained weights it runs."""
    jobs: tuple[Job, ...] = ()
    """Its preparations."""
    commands: tuple[str, ...] = ()
    """Commands for the command line: modules as in :mod:`paretone.commands`, with ``NAME``, ``SUMMARY``,
    ``declare(parser)``, ``run(options, session)``, or ``"package.module:NAME"`` of a
    :class:`paretone.commands.command.Command`. A name of two words, such as ``train draft``, is a command of
    ``train``."""
    benches: tuple[tuple[str, str], ...] = ()
    """Names and modules of benches, as in :mod:`paretone.bench`."""
    views: tuple[str, ...] = ()
    """Views, as in :mod:`paretone.views`: modules with a ``VIEW``, or ``"package.module:NAME"`` of a
    :class:`paretone.views.view.View`."""
    study: str = ""
    """Module of what studies ask of it: see :mod:`paretone.studies.hooks`."""
    exports: str = ""
    """Module of what exports ask of it: see :mod:`paretone.export.targets`."""

    def not_offered(self, info: ModelInfo) -> str:
        """Why the model that ``info`` describes is not offered it, or its device cannot carry it out, as a sentence, or
        ``""``."""
        return self.lacking(info.family) or dict(info.lacking).get(self.needs, "")

    @property
    def prepared_by(self) -> str:
        """``"calibration"`` (an artefact), ``"training"`` (weights) or ``""`` (nothing to prepare)."""
        return "calibration" if self.artefact else "training" if self.weights else ""


SKIPPING = "skipping"


def idle(technique: Technique, knobs: Values, plan: Plan) -> tuple[Idle, ...]:
    """What a take says if ``technique`` saves nothing under ``plan``; empty if that cannot be."""
    part = technique.slot.partition(":")[0]
    if technique.idle is None and part != SKIPPING:
        return ()
    reason = "no step could be left out" if technique.idle is None else technique.idle(knobs, plan)
    if not isinstance(reason, str):
        raise TypeError(f"idle returned {type(reason).__name__} instead of a text")
    return (Idle(part, technique.title, reason),) if reason else ()


def no_fewer(plan: Plan) -> tuple[str, ...]:
    """Remark on a plan that takes no fewer steps than without techniques."""
    steps, own = plan.options["steps"], plan.reference["steps"]
    return () if steps < own else (f"{NOTHING_TO_SKIP}: {steps} steps are no fewer than the setting's own {own}.",)


def require_whole(context: Context, plan: Plan, why: str) -> None:
    """Raise :class:`SettingError` if another technique computes evaluations in part; ``why`` they must be whole."""
    title = context.title_in("skipping")
    if title or plan.computes_in_part:
        raise Conflict(
            f"{title or 'Another technique'} computes another part of every evaluation, and {why}; choose one of them.",
            "skipping",
        )


def named_weights(there: Sequence[AnyWeights], fingerprint: str, kind: str, info: ModelInfo) -> AnyWeights:
    """Those of the weights ``there`` with this fingerprint; ``kind`` says what they are. Raises
    :class:`paretone.setting.plan.NotPrepared` if the loaded model has none."""
    for one in there:
        if one.fingerprint == fingerprint:
            return one
    raise NotPrepared(
        f"The {kind} {fingerprint[:12]!r} is not among those of {info.title} here; put its file next to the others, or "
        "train your own.",
        command=f"paretone models {info.id}",
    )


def to_type(command: str, info: ModelInfo) -> str:
    """``paretone COMMAND`` for the loaded model: the name of a command, then its options, and where the model lies
    between them if that is not the usual place; ``""`` for a model that the catalogue has not."""
    chosen = next((one for one in MODELS if one.id == info.id), None)
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
    """A number from 2 on as it is said after "every": second, third, 4th, 21st."""
    words = {2: "second", 3: "third"}
    if number in words:
        return words[number]
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
