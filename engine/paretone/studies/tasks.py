"""Tasks of a study's workers, and their outcomes. Torch-free and picklable: both may be on other machines."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass, field

from paretone.measure.evaluation.judges import Verdict
from paretone.measure.fidelity import Sounded
from paretone.models.base import Utterance
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import Take
from paretone.studies.study import Cell, StudySentence


@dataclass(frozen=True)
class Equipment:
    """Equipment of a worker: model, device and judges."""

    model: str
    folder: str = ""
    variant: str = ""
    device: str = "auto"
    judges: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """All sentences of the study, over which the offline judge is closed."""
    vocoder: str = ""


@dataclass(frozen=True)
class Prepare:
    """Prepare the artefact of ``technique`` for the setting called ``key``."""

    key: str
    technique: str
    setting: Setting
    utterances: tuple[Utterance, ...]


@dataclass(frozen=True)
class MeasureReference:
    """Let the judges hear the reference speech of an utterance."""

    spoken: StudySentence


@dataclass(frozen=True)
class Speak:
    """Make one take, and compare it with ``baseline``, the spectrogram and the sound of its baseline, if they are
    given."""

    cell: Cell
    setting: Setting
    spoken: StudySentence
    artefacts: tuple[Artefact, ...] = ()
    baseline: Sounded | None = field(default=None, repr=False, compare=False)


Task = Prepare | MeasureReference | Speak


@dataclass(frozen=True)
class Prepared:
    """The artefact that was prepared."""

    task: Prepare
    artefact: Artefact
    seconds: float


@dataclass(frozen=True)
class ReferenceMeasured:
    """The judges' verdicts on the reference speech; ``why_not`` says why there are none."""

    task: MeasureReference
    verdicts: tuple[Verdict, ...]
    seconds: float
    why_not: str = ""


@dataclass(frozen=True)
class Made:
    """A finished take, with its figures against its baseline. In later rounds it has no samples: they are those of the
    first."""

    task: Speak
    take: Take
    clock_seconds: float
    """Seconds by ``clock``, which speed-ups are measured by."""
    clock: str
    busy_seconds: float
    """Wall seconds that the worker was busy with it, warm-up and judges included."""
    verdicts: tuple[Verdict, ...] = field(default=())


@dataclass(frozen=True)
class Failed:
    """A task that could not be done, and why. ``whole_setting`` says that no task with this setting can."""

    task: Task
    sentence: str
    seconds: float
    whole_setting: bool = False


Outcome = Prepared | ReferenceMeasured | Made | Failed


def take_id(cell: Cell) -> str:
    """The id of a cell's take: always the same, so that what is delivered twice is kept once."""
    return hashlib.sha256("|".join(map(str, astuple(cell)[:3])).encode()).hexdigest()[:32]
