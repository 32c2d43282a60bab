"""The language between a front end and the engine: commands go in, events come out.

All of them are frozen dataclasses that can be pickled, so the engine may as well live in another process. ``job`` is
chosen by the sender of a command; every event that a command causes carries it, and exactly one of
:class:`JobFinished`, :class:`JobFailed` and :class:`JobCancelled` ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from engine.measure.roofline.report import RooflineReport
from engine.models.base import AttentionCapture, ModelInfo, OperationCounts, Utterance, Voice
from engine.models.files.layer_importance import ImportanceRecord
from engine.setting.knobs import NO_VALUES, Values
from engine.setting.setting import Setting
from engine.setting.take import DemaskedPassage, Take
from engine.techniques.ditreducio.record import CalibrationRecord, Trial
from engine.techniques.ditreducio.table import StrategyTable
from engine.techniques.ditreducio.transfer_report import TransferReport
from engine.views.figure import Figure

if TYPE_CHECKING:
    from engine.setting.profile import Profile
    from engine.studies.stored import StoredTake


# --- Commands --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Command:
    """Something to do. ``job`` is its number, chosen by whoever sends it."""

    job: int
    activity: ClassVar[str] = ""
    """What it does, as in "synthesising": see :attr:`doing`."""
    carried_out_by: ClassVar[str] = ""
    """The function that does it, ``"package.module:function"``: see :mod:`engine.session.jobs`. Without one, a command
    says something about other jobs, which :class:`engine.session.engine_thread.EngineThread` does at once."""
    timed: ClassVar[bool] = False
    """Whether it measures times, which a rest in the middle would falsify: see :class:`Hold`."""

    @property
    def doing(self) -> str:
        """What it is called while it runs."""
        return self.activity


@dataclass(frozen=True)
class LoadModel(Command):
    """Load a model of the catalogue. ``folder`` and ``variant`` override the catalogue's; ``device`` is ``auto``,
    ``cpu``, ``cuda`` or ``mps``."""

    activity = "loading the model"
    carried_out_by = "engine.session.jobs.models:load_model"

    model: str
    folder: str = ""
    variant: str = ""
    device: str = "auto"


@dataclass(frozen=True)
class DownloadModel(Command):
    """Fetch an official checkpoint into ``folder``. The user has seen and accepted ``licence``."""

    activity = "downloading the model"
    carried_out_by = "engine.session.jobs.models:download_model"

    model: str
    folder: str
    licence: str


@dataclass(frozen=True)
class Synthesise(Command):
    """Speak ``text`` in ``voice`` under ``setting``. ``artefacts`` are those that the setting names by fingerprint."""

    activity = "synthesising"
    carried_out_by = "engine.session.jobs.synthesis:synthesise"
    timed = True

    text: str
    voice: Voice
    setting: Setting
    artefacts: tuple[StrategyTable, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class Calibrate(Command):
    """Calibrate DiTReducio for ``setting``, whose DiTReducio knobs say how, on all ``utterances`` together. ``combine``
    is one of :data:`engine.techniques.ditreducio.COMBINATIONS`."""

    activity = "calibrating"
    carried_out_by = "engine.session.jobs.preparation:calibrate"

    utterances: tuple[Utterance, ...]
    setting: Setting
    combine: str = "worst"


@dataclass(frozen=True)
class CaptureAttention(Command):
    """Run ``setting`` up to ``step`` and capture the attention of ``layer`` there, all branches."""

    activity = "capturing attention"
    carried_out_by = "engine.session.jobs.inspection:capture_attention"

    text: str
    voice: Voice
    setting: Setting
    layer: int
    step: int
    artefacts: tuple[StrategyTable, ...] = ()


@dataclass(frozen=True)
class DecodePartial(Command):
    """Decode a ``passage`` of a take that was made under ``setting`` as it was after ``step``, counted from 0."""

    activity = "decoding a part"
    carried_out_by = "engine.session.jobs.synthesis:decode_partial"

    passage: DemaskedPassage
    step: int
    voice: Voice
    setting: Setting


@dataclass(frozen=True)
class MeasureTransfer(Command):
    """Measure how well ``table``, ``calibrated`` on these utterances as far as they are known, serves ``unseen`` ones.
    Errors are compared with the threshold of DiTReducio in ``setting``."""

    activity = "measuring the transfer"
    carried_out_by = "engine.session.jobs.preparation:measure_transfer"

    table: StrategyTable
    calibrated: tuple[Utterance, ...]
    unseen: tuple[Utterance, ...]
    setting: Setting


@dataclass(frozen=True, kw_only=True)
class Training(Command):
    """What trainings have in common. The budget is ``minutes`` or ``steps``. Cancelling leaves a checkpoint in the
    run's folder ``work``, from which the same command goes on with ``resume``. ``device`` as in :class:`LoadModel`."""

    activity = "training"
    carried_out_by = "engine.session.jobs.preparation:train"

    minutes: float | None = None
    steps: int | None = None
    resume: bool = False
    half_precision: bool = False
    rate_scale: float = 1.0
    """On all learning rates."""
    device: str = "auto"


@dataclass(frozen=True)
class TrainGuidanceFree(Training):
    """Fine-tune ``model`` on ``manifest`` so that one branch speaks as under guidance; the bundled model, without one,
    on what flite speaks. ``folder`` and ``variant`` as in :class:`LoadModel`; the loaded model is not touched."""

    model: str
    manifest: str
    work: str
    weight: float
    method: str = "model-guidance"
    """Or ``distillation``."""
    learning_rate: float | None = None
    """``None`` for the usual one of a model of this size."""
    folder: str = ""
    variant: str = ""


@dataclass(frozen=True)
class TrainCompanion(Training):
    """Train a smaller companion of the language model ``model``, which with ``folder`` and ``variant`` is as in
    :class:`LoadModel`.

    The model speaks ``sentences`` a voice itself and learns from that; recordings of ``manifest`` come in addition, or
    alone where ``sentences`` is 0.
    """

    model: str
    work: str
    _: KW_ONLY
    sentences: int = 600
    manifest: str = ""
    folder: str = ""
    variant: str = ""


@dataclass(frozen=True, kw_only=True)
class TrainDraft(TrainCompanion):
    """A draft for speculative decoding: the model's lowest ``lower`` and topmost ``upper`` layers, of which the lowest
    and the head learn."""

    lower: int = 2
    upper: int = 0


@dataclass(frozen=True, kw_only=True)
class TrainStudent(TrainCompanion):
    """A student by SPADE: with the ``retained`` layers or, if none are named, with the ``depth`` most important ones
    by measurement. What it is after each of ``stages`` (minutes of the budget) is kept, too."""

    depth: int = 6
    retained: tuple[int, ...] = ()
    stages: tuple[float, ...] = ()


@dataclass(frozen=True)
class TrainBundledModel(Training):
    """Make a bundled model or its codec from nothing but what ``flite`` speaks. ``recipe`` is one that ``paretone
    train`` lists (``lm-mini``, ``speech-tokenizer``, ``omni-mini``, ``codec-mini``, …); ``codec`` is the folder of the
    tokenizer or codec to speak through if it is not the bundled one."""

    recipe: str
    work: str
    sentences: int = 3400
    corpus: str = ""
    codec: str = ""
    initial: str = ""
    """Official folder whose weights a vocoder starts from."""
    threads: int | None = None
    """Of the processor; ``None`` for all cores but one."""
    export: str = ""
    """Folder for the result; ``""`` for one in ``work``."""


@dataclass(frozen=True)
class MeasureImportance(Command):
    """Measure how much each layer of the loaded language model matters, and keep the record in the user's place for the
    model. ``measures`` are among :data:`engine.models.files.layer_importance.MEASURES`; the word error rate speaks
    ``utterances`` with every layer left out in turn, which takes long."""

    activity = "measuring the layers"
    carried_out_by = "engine.session.jobs.preparation:measure_importance"

    setting: Setting
    utterances: tuple[Utterance, ...]
    measures: tuple[str, ...] = ("divergence", "cosine")


@dataclass(frozen=True)
class Prepare(Command):
    """Calibrate, measure or train something for ``technique``. ``request`` is of a type that one of its jobs declares
    (see :class:`engine.techniques.base.Job`): frozen and picklable. Ends with :class:`Prepared`."""

    carried_out_by = "engine.session.jobs.preparing:prepare"

    technique: str
    request: Any

    @property
    def doing(self) -> str:
        """What the request calls it, as in "calibrating"."""
        return getattr(self.request, "activity", "preparing")


@dataclass(frozen=True)
class ComputeView(Command):
    """Compute the view called ``view`` (see :func:`engine.views.views`) on ``utterance`` under ``setting``, with
    ``knobs`` of its own. A calibration at hand, ``record``, may spare one."""

    activity = "computing the view"
    carried_out_by = "engine.session.jobs.inspection:compute_view"
    timed = True

    view: str
    utterance: Utterance
    setting: Setting
    knobs: Values = NO_VALUES
    record: Any = None


@dataclass(frozen=True)
class MeasureRoofline(Command):
    """Measure every component of the loaded model under ``setting`` against this machine's ceilings, which are measured
    first if they are not known, or ``again``. Where ``trace`` names a file, a Chrome trace is written there."""

    activity = "measuring the roofline"
    carried_out_by = "engine.session.jobs.inspection:measure_roofline"
    timed = True

    utterance: Utterance
    setting: Setting
    artefacts: tuple[StrategyTable, ...] = ()
    again: bool = False
    rounds: int = 5
    """How often everything is measured."""
    trace: str = ""


@dataclass(frozen=True)
class ExportProfile(Command):
    """Write ``profile`` into ``folder`` in the form of ``target`` (see :data:`engine.export.targets.TARGETS`): all of
    its files or none, and no file that is there is replaced.

    ``model_folder`` holds the checkpoint if it is not where the catalogue has it; the loaded model is not touched.
    """

    activity = "exporting"
    carried_out_by = "engine.session.jobs.exports:export_profile"

    profile: Profile
    target: str
    folder: str
    model_folder: str = ""


@dataclass(frozen=True)
class ExportWeights(Command):
    """Write a student or a draft of the language model ``model`` (``kind`` is ``student`` or ``draft``, ``file`` the
    one that is meant) into ``folder``, as a checkpoint that others load: all of its files or none, and no file that is
    there is replaced. ``settings`` of SSD go with a draft; ``model_folder`` as in :class:`ExportProfile`."""

    activity = "exporting"
    carried_out_by = "engine.session.jobs.exports:export_weights"

    model: str
    kind: str
    file: str
    folder: str
    settings: Values = NO_VALUES
    model_folder: str = ""


@dataclass(frozen=True)
class RunStudy(Command):
    """Do what is left of the study that ``file`` describes, and keep every finished take in ``folder``.

    Cancelling loses the takes under way only, :class:`PauseStudy` not even these; the same command continues from
    there. The loaded model serves where the study is of it; else the study loads its own, and that one stays as it is.
    """

    activity = "running the study"
    carried_out_by = "engine.session.jobs.studies:run_study"
    timed = True

    file: str
    folder: str
    """Empty for the one next to the file that the command line uses, too."""
    ray: str = ""
    """Address of a Ray cluster to run it on, ``auto`` or ``local``; see :class:`engine.studies.cluster.Cluster`."""
    workers: int | None = None
    """On the cluster; ``None`` for one on each GPU or core."""


@dataclass(frozen=True)
class PauseStudy(Command):
    """End the study that the job ``target`` runs once the takes under way are finished. One that waits is cancelled."""

    target: int


@dataclass(frozen=True)
class Cancel(Command):
    """Cancel the job ``target``, running or waiting."""

    target: int


@dataclass(frozen=True)
class Hold(Command):
    """Compute nothing until :class:`Release`. What runs waits at its next step, or at its next take; only what measures
    its own time is finished first. Nothing new begins. :class:`EngineRests` says when nothing computes any more."""


@dataclass(frozen=True)
class Release(Command):
    """Go on after :class:`Hold`."""


@dataclass(frozen=True)
class ShutDown(Command):
    """Cancel everything and end the engine thread."""


# --- Events ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Event:
    """Something that happened in the job ``job`` (0: in no job)."""

    job: int


@dataclass(frozen=True)
class EngineStatus(Event):
    """A line for the status bar."""

    text: str


@dataclass(frozen=True)
class EngineReady(Event):
    """The engine can take jobs. ``machine`` describes processor, memory and versions in one line."""

    device: str
    devices: tuple[str, ...]
    machine: str


@dataclass(frozen=True)
class EngineRests(Event):
    """Nothing computes, and nothing will until :class:`Release`."""


@dataclass(frozen=True)
class ModelLoaded(Event):
    """A model is loaded and warm."""

    info: ModelInfo
    seconds: float


@dataclass(frozen=True)
class ModelDownloaded(Event):
    """The files of a checkpoint are there, those that were there before included; ``files`` are their paths."""

    files: tuple[str, ...]


@dataclass(frozen=True)
class Progress(Event):
    """``done`` of ``total`` units; ``seconds_left`` is ``None`` until it can be estimated."""

    done: int
    total: int
    seconds_left: float | None
    text: str


@dataclass(frozen=True)
class Telemetry(Event):
    """Live figures of a running synthesis; latest wins."""

    chunk: int
    chunks: int
    step: int
    steps: int
    step_seconds: float
    steps_per_second: float
    elapsed_seconds: float
    audio_seconds: float
    """Seconds of audio finished so far."""
    real_time_factor: float | None
    """Elapsed seconds over the audio that they made: the finished audio, and of the running chunk's the share of steps
    done. ``None`` if a chunk's length is not known beforehand and none is finished."""
    first_audio_seconds: float | None
    memory_bytes: int
    tokens: int | None = None
    """Speech tokens so far; ``None`` for models without tokens."""
    tokens_per_second: float | None = None
    largest_gap_seconds: float = 0.0
    """The longest wait from one piece of audio to the next so far."""
    pause_seconds: float = 0.0
    """How long playback, begun with the first piece, has had to wait so far."""


@dataclass(frozen=True)
class AudioReady(Event):
    """Audio that can be played now, continuing where the job's last piece ended."""

    samples: np.ndarray = field(repr=False)
    sample_rate: int = 24000


@dataclass(frozen=True)
class TakeReady(Event):
    """A finished take, and the operation counts of its (first chunk's) backbone evaluation."""

    take: Take
    operations: OperationCounts | None = None


@dataclass(frozen=True)
class TrialDone(Event):
    """One layer trial of a calibration."""

    trial: Trial


@dataclass(frozen=True)
class PreparationReport(Event):
    """Something that a preparation for ``technique`` has found on the way, such as a trial or a loss. Live: a front end
    may look at them some times a second, all together."""

    technique: str
    report: Any


@dataclass(frozen=True)
class Prepared(Event):
    """What came of a preparation for ``technique``."""

    technique: str
    result: Any
    info: ModelInfo | None = None
    """The loaded model, where it knows more now: new weights, how much its layers matter."""


@dataclass(frozen=True)
class SimilarityMeasured(Event):
    """The check phase's diagonal similarities so far: (layers, steps) float, NaN where not yet measured."""

    similarities: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class CalibrationReady(Event):
    """A finished calibration."""

    record: CalibrationRecord
    operations: OperationCounts | None
    seconds: float


@dataclass(frozen=True)
class TrainingProgress(Event):
    """After every training step, with its ``losses``, and after every validation, with its figures: the points of the
    two curves."""

    step: int
    """From 1; 0 for the validation before the first step."""
    share: float
    """Spent of the budget, 0 to 1."""
    seconds: float
    """Spent by the budget's clock."""
    seconds_left: float | None
    """Wall seconds; ``None`` until they can be estimated."""
    losses: Mapping[str, float]
    """By name; empty after a validation."""
    validation: Mapping[str, float]
    """By name; empty after a step. CFG-free: ``guided t=0.05`` and so on, mean squared error to the guided velocity at
    a time; ``gap``, their sum as a share of what it is without training; ``learnt``, the share of the guidance that one
    branch has taken on, 0 to about 1. A draft: ``acceptance``. A student: ``divergence`` from its teacher in nats.
    Both: ``same_first``, the share of tokens at which both would choose the same, and ``correct``, at which it is what
    was spoken."""


@dataclass(frozen=True)
class TrainingDone(Event):
    """A finished training, and the checkpoint that came of it."""

    checkpoint: str
    technique: str
    """The name of the technique that it is for; ``""`` for a model of its own."""
    summary: str
    """What came of it, as a sentence."""
    figures: Values
    """What the checkpoint is. CFG-free: ``weight``, ``equivalent_guidance`` and ``method``; a draft and a student:
    ``layers``, how many there are, and ``retained``, which, separated by commas; a student also ``depth``."""
    steps: int
    seconds: float
    validation: Mapping[str, float]
    info: ModelInfo | None = None
    """The loaded model, if it is the one that was trained: it has the new weights now."""


@dataclass(frozen=True)
class LayersMeasured(Event):
    """How much each layer of the loaded model matters; ``record`` is in the file ``path`` as well."""

    record: ImportanceRecord
    path: str
    info: ModelInfo
    """The loaded model: it knows the new order."""


@dataclass(frozen=True)
class TransferMeasured(Event):
    """How well a strategy table serves sentences that it was not calibrated on."""

    report: TransferReport
    seconds: float


@dataclass(frozen=True)
class StudyBegun(Event):
    """A study runs in ``folder``. What is found is read with :func:`engine.studies.results.read`."""

    folder: str
    title: str


@dataclass(frozen=True)
class StudyTakeDone(Event):
    """A finished take of a study, which is kept by now."""

    folder: str
    take: StoredTake


@dataclass(frozen=True)
class StudyEnded(Event):
    """A study came to its end, or to a pause."""

    folder: str
    paused: bool
    made: int
    """Takes of this run."""
    log: tuple[str, ...] = ()
    """What is to be said of the workers, in sentences."""
    found: tuple[str, ...] = ()
    """What it has found of the model itself, in sentences."""
    fields: Values = NO_VALUES
    """The same by name, for programs: such as ``layers``, the file of the model's layers that it has added to."""


@dataclass(frozen=True)
class ViewComputed(Event):
    """A view's figure."""

    figure: Figure


@dataclass(frozen=True)
class RooflineMeasured(Event):
    """What every component takes, and the least that it could."""

    report: RooflineReport


@dataclass(frozen=True)
class ProfileExported(Event):
    """A profile is in ``folder`` in the form of ``target``: these ``files``, by name."""

    target: str
    folder: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class WeightsExported(Event):
    """A student or a draft is in ``folder``: these ``files``, by name."""

    kind: str
    folder: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class AttentionCaptured(Event):
    """Attention of one layer at one step."""

    capture: AttentionCapture


@dataclass(frozen=True)
class PartialDecoded(Event):
    """The sound of a passage as it was after a step, float32 mono; not levelled or trimmed as a take is."""

    samples: np.ndarray
    sample_rate: int
    step: int


@dataclass(frozen=True)
class JobFinished(Event):
    """The job is done."""


@dataclass(frozen=True)
class JobFailed(Event):
    """The job failed; ``sentence`` says why and what to do, ``details`` is a traceback for the log or ``""``.

    ``candidates`` are architectures of which the user has to choose one: the job then succeeds with it as the
    ``variant`` of :class:`LoadModel`."""

    sentence: str
    details: str = ""
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobCancelled(Event):
    """The job was cancelled."""
