"""Schema of a study's database, and its settings and takes as read from there. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paretone.measure.evaluation.judges import Verdict
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Metrics
from paretone.studies.study import Candidate, Cell

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE study (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        title TEXT NOT NULL,
        model TEXT NOT NULL,
        checkpoint TEXT NOT NULL,
        definition TEXT NOT NULL,
        file TEXT NOT NULL,
        created TEXT NOT NULL
    );
    CREATE TABLE settings (
        key TEXT PRIMARY KEY,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        origin TEXT NOT NULL,
        baseline TEXT NOT NULL,
        setting TEXT NOT NULL,
        problem TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    CREATE TABLE tables (
        setting TEXT PRIMARY KEY,
        content TEXT NOT NULL,
        seconds REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE takes (
        setting TEXT NOT NULL,
        utterance TEXT NOT NULL,
        seed INTEGER NOT NULL,
        round INTEGER NOT NULL,
        take TEXT NOT NULL,
        created TEXT NOT NULL,
        text TEXT NOT NULL,
        voice TEXT NOT NULL,
        sample_rate INTEGER NOT NULL,
        frames INTEGER NOT NULL,
        measurements TEXT NOT NULL,
        metrics TEXT NOT NULL,
        log_mel_distance REAL,
        clock_seconds REAL NOT NULL,
        clock TEXT NOT NULL,
        busy_seconds REAL NOT NULL,
        verdicts TEXT NOT NULL,
        notes TEXT NOT NULL,
        machine TEXT NOT NULL,
        PRIMARY KEY (setting, utterance, seed, round)
    ) WITHOUT ROWID;
    CREATE TABLE spectrograms (
        take TEXT PRIMARY KEY,
        frames INTEGER NOT NULL,
        content BLOB NOT NULL
    );
    CREATE TABLE refs (
        utterance TEXT PRIMARY KEY,
        verdicts TEXT NOT NULL,
        why_not TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE failures (
        setting TEXT NOT NULL,
        utterance TEXT NOT NULL,
        seed INTEGER NOT NULL,
        round INTEGER NOT NULL,
        sentence TEXT NOT NULL,
        PRIMARY KEY (setting, utterance, seed, round)
    ) WITHOUT ROWID;
    CREATE TABLE trials (
        number INTEGER PRIMARY KEY,
        params TEXT NOT NULL,
        setting TEXT NOT NULL,
        state TEXT NOT NULL,
        outcome TEXT NOT NULL
    );
    """,
    "CREATE TABLE decodings (take TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID",
    # From here on measurements say what other processes took of the machine, which earlier versions cannot read.
    "",
)


@dataclass(frozen=True)
class StoredSetting:
    """A setting of a study."""

    key: str
    place: int
    name: str
    origin: str
    baseline: str
    setting: Setting
    problem: str = ""
    """Why it cannot be run, as a sentence, or ``""``."""

    @property
    def candidate(self) -> Candidate:
        """The same as the study has it."""
        return Candidate(self.setting, self.origin, self.name)


@dataclass(frozen=True)
class StoredTake:
    """One finished take of a study, without its audio."""

    cell: Cell
    take: str
    """Its id; later rounds have that of the first, whose audio is theirs."""
    created: str
    text: str
    voice: str
    sample_rate: int
    frames: int
    measurements: Measurements = field(repr=False)
    metrics: Metrics = field(repr=False)
    log_mel_distance: float | None
    clock_seconds: float
    clock: str
    busy_seconds: float
    verdicts: tuple[Verdict, ...] = field(repr=False)
    notes: tuple[str, ...]
    machine: str


@dataclass(frozen=True)
class StoredTrial:
    """One trial of a search. ``outcome`` is empty until it is complete."""

    number: int
    params: Mapping[str, object]
    setting: str
    state: str
    """``RUNNING``, ``COMPLETE``, ``FAILED``, or ``RULED_OUT`` for a setting that techniques do not allow."""
    outcome: Mapping[str, Any] = field(default_factory=dict)


RUNNING, COMPLETE, FAILED, RULED_OUT = "running", "complete", "failed", "ruled out"
