"""Studies: settings × utterances × seeds. Torch-free.

A cell of a study is one setting on one utterance with one seed in one round: rounds repeat a take to measure its speed
again. :mod:`paretone.studies.definition` reads a study from its file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from paretone.measure.evaluation.judges import Verdict
from paretone.measure.fidelity import Sounded
from paretone.models import catalogue
from paretone.models.base import Utterance, Voice
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.setting.take import Take
from paretone.studies.evaluation_sets import EvaluationSet, StudySentence
from paretone.studies.space import OFF, Search, VariedKnob
from paretone.techniques import technique
from paretone.wording import grouped

BASELINE, LISTED, GRID, SEARCH, SERVER = "baseline", "list", "grid", "search", "server"
"""Origins of a study's settings; servers: :mod:`paretone.studies.servers`."""


@dataclass(frozen=True)
class Candidate:
    """A setting of a study, without seed and without the artefacts prepared within the study."""

    setting: Setting
    origin: str
    name: str = ""
    cloned: Voice | None = field(default=None, repr=False, compare=False)
    """The recording that a server clones in place of the study's voices."""

    @cached_property
    def key(self) -> str:
        return self.setting.fingerprint

    @cached_property
    def baseline(self) -> str:
        return self.setting.baseline.fingerprint

    @cached_property
    def unprepared(self) -> str:
        """Name of its technique that needs preparing within the study, or ``""``."""
        lacking = (one.technique for one in self.setting.techniques if not one.artefact)
        return next((name for name in lacking if technique(name).prepared_by == "calibration"), "")

    @cached_property
    def fixed_by_seed(self) -> bool:
        return all(technique(one.technique).fixed_by_seed(one.knobs) for one in self.setting.techniques)


@dataclass(frozen=True)
class Cell:
    setting: str
    utterance: str
    seed: int
    round: int = 0


@dataclass(frozen=True)
class Study:
    """A study. ``candidates``: all baselines first, servers last; ``ruled_out``: refused combinations, with reasons."""

    title: str
    model: str
    options: Values
    """Of settings that do not vary them."""
    candidates: tuple[Candidate, ...]
    utterances: tuple[StudySentence, ...]
    seeds: tuple[int, ...] = (0,)
    rounds: int = 1
    batch: int = 1
    """Takes that are spoken at once; beyond 1 nothing is timed."""
    judges: tuple[str, ...] = ()
    calibration: tuple[Utterance, ...] = ()
    search: Search | None = None
    folder: str = ""
    variant: str = ""
    vocoder: str = ""
    device: str = "auto"
    ruled_out: tuple[tuple[str, str], ...] = ()
    evaluation: EvaluationSet | None = field(default=None, repr=False, compare=False)
    definition: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def takes(self) -> int:
        return (len(self.candidates) + (self.search.trials if self.search else 0)) * self.takes_each

    @property
    def takes_each(self) -> int:
        return len(self.utterances) * len(self.seeds) * self.rounds

    def cells(self, candidate: Candidate) -> Iterator[Cell]:
        """All cells of one setting, round by round."""
        for number in range(self.rounds):
            for seed in self.seeds:
                for spoken in self.utterances:
                    yield Cell(candidate.key, spoken.key, seed, number)

    def equipment(self, judges: Sequence[str]) -> Equipment:
        texts = tuple(dict.fromkeys(one.text for one in self.utterances))
        return Equipment(
            self.model, self.folder, self.variant, self.device, tuple(judges), texts, self.vocoder, self.batch
        )


def results_folder(file: str | Path) -> Path:
    return Path(file).parent / f"{Path(file).stem}.study"


def assembled(model: str, options: Values, values: Mapping[VariedKnob, object]) -> Setting:
    """Setting at one point of the axes; a technique with any axis off is not used."""
    changed: dict[str, object] = {}
    knobs: dict[str, dict[str, object]] = {}
    off = {axis.technique for axis, value in values.items() if axis.technique and value == OFF}
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
    setting = replace(candidate.setting, seed=seed)
    used = setting.technique(candidate.unprepared)
    return setting.with_technique(replace(used, artefact=artefact)) if used and artefact else setting


# --- Tasks of workers, and their outcomes -----------------------------------------------------------------------------
# Picklable, for workers on other machines.
@dataclass(frozen=True)
class Equipment:
    model: str
    folder: str = ""
    variant: str = ""
    device: str = "auto"
    judges: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """All sentences of the study, the vocabulary of the offline judge."""
    vocoder: str = ""
    batch: int = 1


@dataclass(frozen=True)
class Prepare:
    """Prepare the artefact of ``technique`` for the setting ``key``."""

    key: str
    technique: str
    setting: Setting
    utterances: tuple[Utterance, ...]


@dataclass(frozen=True)
class MeasureReference:
    spoken: StudySentence


@dataclass(frozen=True)
class Speak:
    """Make one take, and compare it with the spectrogram and audio of its ``baseline``, if given."""

    cell: Cell
    setting: Setting
    spoken: StudySentence
    artefacts: tuple[Artefact, ...] = ()
    baseline: Sounded | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, cell: Cell, candidate: Candidate, spoken: StudySentence, artefact: Artefact | None) -> Speak:
        """The take of ``cell``, with the artefact that was prepared for its setting, if any."""
        setting = seeded(candidate, cell.seed, artefact.fingerprint if artefact else "")
        return cls(cell, setting, spoken, (artefact,) if artefact else ())


Task = Prepare | MeasureReference | Speak


@dataclass(frozen=True)
class Prepared:
    task: Prepare
    artefact: Artefact
    seconds: float


@dataclass(frozen=True)
class ReferenceMeasured:
    """The judges' verdicts on the reference speech; ``why_not``: reason if it is missing."""

    task: MeasureReference
    verdicts: tuple[Verdict, ...]
    seconds: float
    why_not: str = ""


@dataclass(frozen=True)
class Made:
    """A finished take, with its figures relative to its baseline. Later rounds use the first one's samples."""

    task: Speak
    take: Take
    clock_seconds: float
    """Seconds by ``clock``, for speed-ups."""
    clock: str
    """``""``: it counts for no speed-up."""
    busy_seconds: float
    """Wall seconds of the worker, warm-up and judges included."""
    verdicts: tuple[Verdict, ...] = field(default=())
    seams: tuple[float, ...] = ()
    """Seconds at which the take's pieces were joined."""


@dataclass(frozen=True)
class Failed:
    """A failed task with its reason. ``whole_setting``: no task with this setting can succeed."""

    task: Task
    sentence: str
    seconds: float
    whole_setting: bool = False


Outcome = Prepared | ReferenceMeasured | Made | Failed


def take_id(cell: Cell) -> str:
    """Deterministic id of a cell's take, so that duplicates are stored once."""
    return hashlib.sha256("|".join(map(str, astuple(cell)[:3])).encode()).hexdigest()[:32]
