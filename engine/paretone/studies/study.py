"""Studies: settings × utterances × seeds. Torch-free.

A cell of a study is one setting on one utterance with one seed, in one of several rounds: rounds repeat the same take
to measure its speed again. :mod:`paretone.studies.definition` reads a study from its file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from paretone.measure.evaluation.judges import Verdict
from paretone.measure.fidelity import Sounded
from paretone.models import catalogue
from paretone.models.base import Utterance, Voice
from paretone.models.voices import with_folder
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.setting.take import Take
from paretone.studies.space import Search, VariedKnob
from paretone.techniques import technique
from paretone.wording import grouped

BASELINE, LISTED, GRID, SEARCH = "baseline", "list", "grid", "search"
"""Origins of a study's settings."""


@dataclass(frozen=True)
class StudySentence:
    """A text, who speaks it, and a recording of a person saying it if there is one."""

    text: str
    voice: Voice
    reference: str = ""
    """Path of that recording, or ``""``."""

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that are equal for equal texts in equal voices; of one's own recordings, those of
        one path are equal, so that studies of earlier versions are continued."""
        return _digest([self.text, with_folder(self.voice)])

    @property
    def utterance(self) -> Utterance:
        """The same for the engine."""
        return Utterance(self.text, self.voice)


@dataclass(frozen=True)
class Candidate:
    """A setting of a study: without seed, and without the artefacts that are prepared within the study."""

    setting: Setting
    origin: str
    name: str = ""

    @cached_property
    def key(self) -> str:
        return self.setting.fingerprint

    @cached_property
    def baseline(self) -> str:
        return self.setting.baseline.fingerprint

    @cached_property
    def unprepared(self) -> str:
        """The technique that has to be prepared for it within the study, by name, or ``""``."""
        lacking = (one.technique for one in self.setting.techniques if not one.artefact)
        return next((name for name in lacking if technique(name).prepared_by == "calibration"), "")


@dataclass(frozen=True)
class Cell:
    """One take of a study, by what identifies it."""

    setting: str
    utterance: str
    seed: int
    round: int = 0


@dataclass(frozen=True)
class Study:
    """A whole study. ``candidates`` begin with the baselines of all others; ``ruled_out`` are combinations of a grid
    that techniques do not allow, with the reason."""

    title: str
    model: str
    candidates: tuple[Candidate, ...]
    utterances: tuple[StudySentence, ...]
    seeds: tuple[int, ...] = (0,)
    rounds: int = 1
    judges: tuple[str, ...] = ()
    calibration: tuple[Utterance, ...] = ()
    search: Search | None = None
    folder: str = ""
    variant: str = ""
    vocoder: str = ""
    device: str = "auto"
    ruled_out: tuple[tuple[str, str], ...] = ()
    definition: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The definition as it was read."""

    @property
    def takes(self) -> int:
        """Total number of takes, including those of the search."""
        searched = self.search.trials if self.search else 0
        return (len(self.candidates) + searched) * self.takes_each

    @property
    def takes_each(self) -> int:
        return len(self.utterances) * len(self.seeds) * self.rounds

    def cells(self, candidate: Candidate) -> Iterator[Cell]:
        """All cells of one setting, round by round."""
        for number in range(self.rounds):
            for seed in self.seeds:
                for spoken in self.utterances:
                    yield Cell(candidate.key, spoken.key, seed, number)

    def to_json(self) -> dict:
        return dict(self.definition)


def results_folder(file: str | Path) -> Path:
    """Default folder of the results of the study that ``file`` describes."""
    return Path(file).with_suffix(".study")


def assembled(model: str, options: Values, values: Mapping[VariedKnob, object]) -> Setting:
    """The setting at one point of the axes; a technique any of whose axes is off is not used."""
    changed: dict[str, object] = {}
    knobs: dict[str, dict[str, object]] = {}
    off = {axis.technique for axis, value in values.items() if axis.is_off(value)}
    for axis, value in values.items():
        if not axis.technique:
            changed[axis.knob] = value
        elif axis.technique not in off:
            knobs.setdefault(axis.technique, {}).update({axis.knob: value} if axis.knob else {})
    setting = Setting(model, checked(catalogue.entry(model).options, options.replace(**changed), "options"))
    for name, given in knobs.items():
        setting = setting.with_technique(
            UsedTechnique(name, checked(technique(name).knobs, given, technique(name).title))
        )
    return setting


def duration(seconds: float) -> str:
    """Seconds in a suitable unit."""
    for unit, length in (("years", 365.25 * 86_400), ("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}" if seconds < 10 * length else f"{grouped(seconds / length)} {unit}"
    return f"{seconds:.0f} seconds"


def seeded(candidate: Candidate, seed: int, artefact: str = "") -> Setting:
    """The setting that a cell runs: with its seed, and with the artefact that was prepared for it."""
    setting = replace(candidate.setting, seed=seed)
    used = setting.technique(candidate.unprepared)
    return setting.with_technique(replace(used, artefact=artefact)) if used and artefact else setting


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, ensure_ascii=False).encode()).hexdigest()[:16]


# --- Tasks of workers, and their outcomes -----------------------------------------------------------------------------
# Picklable: both may be on other machines.
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
