"""Events from the engine to front ends: outcomes of commands (:mod:`paretone.session.commands`). Events are frozen
dataclasses that can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from paretone.computing import Computing
from paretone.measure.roofline.report import RooflineReport
from paretone.models.base import AttentionCapture, ModelInfo, OfficialIds, OfficialPrompt
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.setting import Artefact
from paretone.setting.take import Measurements, Take, Trace
from paretone.views.figure import Figure

if TYPE_CHECKING:
    from paretone.studies.store import StoredTake


@dataclass(frozen=True)
class Event:
    """Something that happened in the job ``job`` (0: in no job)."""

    job: int


@dataclass(frozen=True)
class Caution(Event):
    """What the user should know of the voice before anything is spoken in it."""

    sentence: str


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
    computing: Computing | None = None
    """What it computes with, and why not on a graphics card; ``None`` if that was not looked at."""


@dataclass(frozen=True)
class EngineHeld(Event):
    """Nothing computes, and nothing will until :class:`~paretone.session.commands.Release`."""


@dataclass(frozen=True)
class ModelLoaded(Event):
    info: ModelInfo
    seconds: float


@dataclass(frozen=True)
class ModelDownloaded(Event):
    """The files of a checkpoint are there, those that were there before included; ``files`` are their paths."""

    files: tuple[str, ...]


@dataclass(frozen=True)
class ExtraInstalled(Event):
    """The optional packages of ``extra`` are there."""

    extra: str
    ready: bool
    """Whether they can be used at once, without a restart."""


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
    """Seconds that playback, started with the first piece, has had to wait so far."""


@dataclass(frozen=True)
class AudioReady(Event):
    """Audio that can be played now, continuing where the job's last piece ended."""

    samples: np.ndarray = field(repr=False)
    sample_rate: int = 24000
    passage: int = 0
    """The passage that it is of, counted from 0."""
    trace: Trace | None = field(default=None, repr=False)
    """What was seen inside of that passage up to here, as a trace of it alone; ``None`` for models without tokens."""


@dataclass(frozen=True)
class TakeReady(Event):
    """A finished take, and the operation counts of its (first chunk's) backbone evaluation."""

    take: Take
    operations: OperationCounts | None = None


@dataclass(frozen=True)
class TakeMade(Event):
    """A finished take that nobody listened to, and the artefacts of its setting, those included that were prepared for
    it."""

    take: Take
    artefacts: tuple[Artefact, ...] = ()


@dataclass(frozen=True)
class TimedAgain(Event):
    """The take ``take`` was timed again: the measurements of each run."""

    take: str
    runs: tuple[Measurements, ...]


@dataclass(frozen=True)
class TakeJudged(Event):
    """What the judges say of a ``take``, by the names of :class:`paretone.setting.take.Metrics`; without judges that
    are not installed or could not measure it."""

    take: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class PreparationReport(Event):
    """Something that a preparation for ``technique`` has found on the way, such as a trial or a loss. Live: a front end
    may look at them some times a second, all together."""

    technique: str
    report: Any


@dataclass(frozen=True)
class Prepared(Event):
    """Result of a preparation for ``technique``."""

    technique: str
    result: Any
    info: ModelInfo | None = None
    """The loaded model, where it knows more now: new weights, how much its layers matter."""


@dataclass(frozen=True)
class StudyBegun(Event):
    """A study runs in ``folder``. What is found is read with :func:`paretone.studies.results.read`."""

    folder: str
    title: str


@dataclass(frozen=True)
class StudyTakeDone(Event):
    """A finished take of a study, which is kept by now."""

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
    fields: Values = NO_VALUES
    """The same by name, for programs: such as ``layers``, the file of the model's layers that it has added to."""


@dataclass(frozen=True)
class ViewComputed(Event):
    figure: Figure


@dataclass(frozen=True)
class RooflineMeasured(Event):
    """Time of every component, and its floor."""

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
class PromptsEncoded(Event):
    """The passages of a text, each as ids, and what the ids are."""

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
    ``variant`` of :class:`~paretone.session.commands.LoadModel`. ``files`` are files of weights, the newest first, of
    which one has to be chosen as its ``folder``."""

    sentence: str
    details: str = ""
    candidates: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobCancelled(Event):
    """The job was cancelled."""
