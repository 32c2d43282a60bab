"""Events from the engine to front ends, picklable: outcomes of commands (:mod:`paretone.session.commands`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from paretone.checks.faults import Checked
from paretone.computing import Computing
from paretone.measure.roofline.report import RooflineReport
from paretone.models.base import AttentionCapture, ModelInfo, OfficialIds, OfficialPrompt
from paretone.sampling.operations import OperationCounts
from paretone.serving.records import ServerRecord
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.setting import Artefact
from paretone.setting.take import Measurements, Take, Trace
from paretone.views.figure import Figure

if TYPE_CHECKING:
    from paretone.studies.store import StoredTake
    from paretone.studies.verifying import Check


@dataclass(frozen=True)
class Event:
    """An event in the job ``job`` (0: in no job)."""

    job: int


@dataclass(frozen=True)
class Caution(Event):
    """Caution about the voice or the setting, before it is used."""

    sentence: str


@dataclass(frozen=True)
class EngineStatus(Event):
    """A line for the status bar."""

    text: str


@dataclass(frozen=True)
class EngineReady(Event):
    """The engine accepts jobs. ``machine`` describes processor, memory and versions in one line."""

    device: str
    devices: tuple[str, ...]
    machine: str
    computing: Computing | None = None
    """Computing device, and the reason if it is not a GPU; ``None`` if not inspected."""


@dataclass(frozen=True)
class EngineHeld(Event):
    """Nothing computes until :class:`~paretone.session.commands.Release`."""


@dataclass(frozen=True)
class ModelLoaded(Event):
    info: ModelInfo
    seconds: float


@dataclass(frozen=True)
class ModelDownloaded(Event):
    """All files of a checkpoint exist, including earlier ones; ``files``: their paths."""

    files: tuple[str, ...]


@dataclass(frozen=True)
class ExtraInstalled(Event):
    """The optional packages of ``extra`` are installed."""

    extra: str
    ready: bool
    """Whether they are usable without a restart."""


@dataclass(frozen=True)
class Progress(Event):
    """``done`` of ``total`` units; ``seconds_left`` is ``None`` until estimated."""

    done: int
    total: int
    seconds_left: float | None
    text: str
    now: str = ""
    """Title of the study's task under way."""
    unit: str = "steps"
    """``steps`` of the job, or ``bytes`` of files that are copied."""


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
    """Elapsed seconds over generated audio: the finished audio, plus the running chunk's in proportion to its finished
    steps. ``None`` if a chunk's length is unknown and none is finished."""
    first_audio_seconds: float | None
    memory_bytes: int
    tokens: int | None = None
    """Speech tokens so far; ``None`` for models without tokens."""
    tokens_per_second: float | None = None
    largest_gap_seconds: float = 0.0
    """Longest wait so far between two pieces of audio."""
    pause_seconds: float = 0.0
    """Seconds so far that playback, started with the first piece, has had to wait."""


@dataclass(frozen=True)
class AudioReady(Event):
    """Playable audio, continuing the job's last piece."""

    samples: np.ndarray = field(repr=False)
    sample_rate: int = 24000
    passage: int = 0
    """Its passage, counted from 0."""
    trace: Trace | None = field(default=None, repr=False)
    """Trace of this passage so far; ``None`` for models without tokens."""


@dataclass(frozen=True)
class TakeReady(Event):
    """A finished take, and the operation counts of its (first chunk's) backbone evaluation."""

    take: Take
    operations: OperationCounts | None = None


@dataclass(frozen=True)
class TakeMade(Event):
    """A finished take without playback, and all artefacts of its setting, newly prepared ones included."""

    take: Take
    artefacts: tuple[Artefact, ...] = ()


@dataclass(frozen=True)
class TimedAgain(Event):
    """Measurements of each repeated run of the take ``take``."""

    take: str
    runs: tuple[Measurements, ...]


@dataclass(frozen=True)
class TakeJudged(Event):
    """Judges' figures of a ``take``, by names of :class:`paretone.setting.take.Metrics`, without failed ones."""

    take: str
    figures: Mapping[str, float]
    checked: Checked = field(default_factory=Checked)
    """Faults, if they were looked for."""


@dataclass(frozen=True)
class ServerMeasured(Event):
    """A measurement so far: after each load, with the ``takes`` of its replies; and once these are judged, with what
    judges said of each, by its id."""

    record: ServerRecord
    takes: tuple[Take, ...] = ()
    judged: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparationReport(Event):
    """Intermediate result of a preparation for ``technique``, such as a trial or a loss. Front ends may process them in
    batches, some times a second."""

    technique: str
    report: Any


@dataclass(frozen=True)
class Prepared(Event):
    """Result of a preparation for ``technique``."""

    technique: str
    result: Any
    info: ModelInfo | None = None
    """The loaded model if its information has changed: new weights, layer importance."""


@dataclass(frozen=True)
class StudyBegun(Event):
    """A study runs in ``folder``. :func:`paretone.studies.results.read` reads its results."""

    folder: str
    title: str


@dataclass(frozen=True)
class StudyTakeDone(Event):
    """A finished take of a study, already stored."""

    folder: str
    take: StoredTake


@dataclass(frozen=True)
class StudyEnded(Event):
    """A study ended or paused."""

    folder: str
    paused: bool
    made: int
    """Takes of this run."""
    log: tuple[str, ...] = ()
    """Remarks on the workers, in sentences."""
    found: tuple[str, ...] = ()
    """Findings about the model itself, in sentences."""
    evaluation: str = ""
    """Sentence on the evaluation set that was spoken, or ``""``."""
    fields: Values = NO_VALUES
    """The findings by name, for programs, such as ``layers``, the updated file of the model's layers."""


@dataclass(frozen=True)
class StudyVerified(Event):
    """What was checked of the study in ``folder``."""

    folder: str
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class ViewComputed(Event):
    figure: Figure


@dataclass(frozen=True)
class RooflineMeasured(Event):
    """Time and floor of every component."""

    report: RooflineReport


@dataclass(frozen=True)
class ProfileExported(Event):
    """A profile was written into ``folder`` in the form of ``target``; ``files`` by name."""

    target: str
    folder: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class WeightsExported(Event):
    """A student or draft, the file ``source``, was written into ``folder``; ``files`` by name."""

    kind: str
    folder: str
    files: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class PromptsEncoded(Event):
    """Passages of a text as ids, and the meaning of the ids."""

    prompts: tuple[OfficialPrompt, ...]
    ids: OfficialIds


@dataclass(frozen=True)
class TokensHeard(Event):
    samples: np.ndarray = field(repr=False)
    """(n,) float32."""
    sample_rate: int


@dataclass(frozen=True)
class AttentionCaptured(Event):
    """Attention of one layer at one step."""

    capture: AttentionCapture


@dataclass(frozen=True)
class PartialDecoded(Event):
    """Audio of a passage after a step, float32 mono; without the levelling and trimming of takes."""

    samples: np.ndarray
    sample_rate: int
    step: int


@dataclass(frozen=True)
class JobFinished(Event):
    pass


@dataclass(frozen=True)
class JobFailed(Event):
    """The job failed; ``sentence``: reason and remedy; ``details``: a traceback for the log, or ``""``.

    ``candidates``: architectures to choose from; the job succeeds with the right one as the ``variant`` of
    :class:`~paretone.session.commands.LoadModel`. ``files``: weights files to choose from, newest first, for its
    ``folder``.
    """

    sentence: str
    details: str = ""
    candidates: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobCancelled(Event):
    pass


ENDINGS = JobFinished, JobFailed, JobCancelled
"""One of them ends every job."""
