"""A study's file: finished work in SQLite, with each take's audio next to it. Torch-free.

Only finished work is written: the audio first, then its row, within one write transaction. So every row has its
complete file, and a crash leaves at most a file without a row, which the next opening removes. A cell is its own key:
duplicates are stored once. Audio lost or damaged later is detected; the take's figures stay until it is made again.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from paretone import files
from paretone.database import Database, json_text, table_of, texts_of
from paretone.errors import PlainError, StudyError
from paretone.fields import record
from paretone.measure.evaluation.judges import Verdict
from paretone.models.voices import without_folder
from paretone.reading import parsed_json, readable, require_regular, shown
from paretone.setting.compatibility import checkpoint_text
from paretone.setting.setting import Artefact, Setting, setting_of
from paretone.setting.take import DecodingTrace, Measurements, Metrics
from paretone.studies.study import Candidate, Cell, Made, Prepared, ReferenceMeasured, Study
from paretone.techniques import technique
from paretone.techniques.base import ArtefactType

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE study (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        title TEXT NOT NULL, model TEXT NOT NULL, checkpoint TEXT NOT NULL,
        definition TEXT NOT NULL, file TEXT NOT NULL, created TEXT NOT NULL
    );
    CREATE TABLE settings (
        key TEXT PRIMARY KEY, place INTEGER NOT NULL, name TEXT NOT NULL, origin TEXT NOT NULL,
        baseline TEXT NOT NULL, setting TEXT NOT NULL, problem TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    CREATE TABLE tables (setting TEXT PRIMARY KEY, content TEXT NOT NULL, seconds REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE takes (
        setting TEXT NOT NULL, utterance TEXT NOT NULL, seed INTEGER NOT NULL, round INTEGER NOT NULL,
        take TEXT NOT NULL, created TEXT NOT NULL, text TEXT NOT NULL, voice TEXT NOT NULL,
        sample_rate INTEGER NOT NULL, frames INTEGER NOT NULL,
        measurements TEXT NOT NULL, metrics TEXT NOT NULL, log_mel_distance REAL,
        clock_seconds REAL NOT NULL, clock TEXT NOT NULL, busy_seconds REAL NOT NULL,
        verdicts TEXT NOT NULL, notes TEXT NOT NULL, machine TEXT NOT NULL,
        PRIMARY KEY (setting, utterance, seed, round)
    ) WITHOUT ROWID;
    CREATE TABLE spectrograms (take TEXT PRIMARY KEY, frames INTEGER NOT NULL, content BLOB NOT NULL);
    CREATE TABLE refs (utterance TEXT PRIMARY KEY, verdicts TEXT NOT NULL, why_not TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE failures (
        setting TEXT NOT NULL, utterance TEXT NOT NULL, seed INTEGER NOT NULL, round INTEGER NOT NULL,
        sentence TEXT NOT NULL,
        PRIMARY KEY (setting, utterance, seed, round)
    ) WITHOUT ROWID;
    CREATE TABLE trials (
        number INTEGER PRIMARY KEY, params TEXT NOT NULL, setting TEXT NOT NULL, state TEXT NOT NULL,
        outcome TEXT NOT NULL
    );
    """,
    "CREATE TABLE decodings (take TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID",
    # From here on measurements include the load of other processes, which earlier versions cannot read.
    "",
    "ALTER TABLE study ADD COLUMN code TEXT NOT NULL DEFAULT '[]'",
)


@dataclass(frozen=True)
class StoredSetting:
    key: str
    place: int
    name: str
    origin: str
    baseline: str
    setting: Setting
    problem: str = ""
    """Reason why it cannot be run, as a sentence, or ``""``."""

    @property
    def candidate(self) -> Candidate:
        return Candidate(self.setting, self.origin, self.name)


@dataclass(frozen=True)
class StoredTake:
    """One finished take of a study, without its audio."""

    cell: Cell
    take: str
    """Take id; later rounds share the first round's id and audio."""
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
    """``RUNNING``, ``COMPLETE``, ``FAILED``, or ``RULED_OUT`` for a setting ruled out by techniques."""
    outcome: Mapping[str, Any] = field(default_factory=dict)


RUNNING, COMPLETE, FAILED, RULED_OUT = "running", "complete", "failed", "ruled out"


# --- The store --------------------------------------------------------------------------------------------------------
DATABASE = "study.sqlite"
_WITH_DECODINGS, _WITH_CODE = 2, 4
"""First schema versions with decodings, and with fingerprints of the code."""


class StudyDamaged(StudyError):
    """The study's file is unreadable; :meth:`Store.set_aside` makes room for a new one."""


class Store(Database):
    """Store of one study, in one folder. Thread-safe: calls are serialised. Raises :class:`StudyError`."""

    title = "study"
    contents = "the study"
    file = DATABASE
    application = 0x50535459
    """"PSTY"."""
    error = StudyError
    damaged = StudyDamaged
    migrations = MIGRATIONS
    kept = "SELECT DISTINCT take FROM takes"

    # --- Definition and settings --------------------------------------------------------------------------------------
    def begin(self, study: Study, file: str = "") -> None:
        """Record the definition. A later one may differ in all but the model, or raises :class:`StudyError`."""
        known = self.about()
        if known and known["model"] != study.model:
            raise StudyError(
                f"The study in {self.folder} is for the model {shown(known['model'])}, not {shown(study.model)}; "
                "choose another folder for its results."
            )
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._written() as connection:
            connection.execute(
                "INSERT INTO study (one, title, model, checkpoint, definition, file, created) VALUES (1, ?, ?, '', ?, "
                "?, ?) ON CONFLICT (one) DO UPDATE SET title = excluded.title, definition = excluded.definition, "
                "file = excluded.file",
                (study.title, study.model, json_text(study.definition), file, now),
            )
            _add_settings(connection, study.candidates)

    def settle_checkpoint(self, fingerprint: str, code: str = "") -> None:
        """Record the weights on first use, and the fingerprint of the ``code`` of each run. Raises :class:`StudyError`
        for other weights than before: takes would be mixed."""
        known = self.about()["checkpoint"]
        if known and known != fingerprint:
            raise StudyError(
                f"The study in {self.folder} was started with other weights, {checkpoint_text(known)}, than the loaded "
                f"ones, {checkpoint_text(fingerprint)}; choose another folder for its results."
            )
        codes = self.codes()
        added = (code,) if code and code not in codes else ()
        if not known or added:
            self._write("UPDATE study SET checkpoint = ?, code = ?", (fingerprint, json_text([*codes, *added])))

    def codes(self) -> tuple[str, ...]:
        """Fingerprints of the code of all runs; empty for studies of earlier versions."""
        if self._version < _WITH_CODE:
            return ()
        return next(iter(self._read(lambda row: texts_of(row[0]), "SELECT code FROM study")), ())

    def about(self) -> dict[str, Any]:
        """Title, model, checkpoint, definition, its file and the time of creation; empty for a new study."""
        names = ("title", "model", "checkpoint", "file", "created", "definition")

        def parse(row: tuple) -> dict[str, Any]:
            return dict(zip(names, (*row[:-1], table_of(row[-1])), strict=True))

        return next(iter(self._read(parse, f"SELECT {', '.join(names)} FROM study")), {})

    def add_setting(self, candidate: Candidate) -> None:
        with self._written() as connection:
            _add_settings(connection, [candidate])

    def settings(self) -> tuple[StoredSetting, ...]:
        return self._read(
            lambda row: StoredSetting(*(*row[:5], setting_of(row[5]), row[6])),
            "SELECT key, place, name, origin, baseline, setting, problem FROM settings ORDER BY place",
        )

    def rule_out(self, setting: str, problem: str) -> None:
        """Record why a setting cannot be run; ``""`` clears it."""
        self._write("UPDATE settings SET problem = ? WHERE key = ?", (problem, setting))

    # --- Takes --------------------------------------------------------------------------------------------------------
    def add_take(self, made: Made, keep_spectrogram: bool) -> StoredTake | None:
        """Store a take atomically. ``None`` if it exists already."""
        cell, take = made.task.cell, made.take
        row = (  # Line by line as in the table.
            *astuple(cell),
            *(take.id, take.created, take.text, take.voice),
            *(take.sample_rate, len(take.samples)),
            *(json_text(asdict(take.measurements)), json_text(asdict(take.metrics)), take.log_mel_distance),
            *(made.clock_seconds, made.clock, made.busy_seconds),
            *(json_text([one.to_json() for one in made.verdicts]), json_text(take.notes), take.machine),
        )
        with self._written() as connection:
            known = self.take(cell)
            if known is not None and self.is_heard(known):
                return None
            path = self.audio_path(take.id)
            written = cell.round == 0
            try:
                if written:
                    files.write_atomically(path, files.wav(take.samples, take.sample_rate))
                if keep_spectrogram and take.trace.mel is not None:
                    mel = np.ascontiguousarray(take.trace.mel, "<f4")
                    content = take.id, len(mel), zlib.compress(mel.tobytes(), 1)
                    connection.execute("INSERT OR REPLACE INTO spectrograms VALUES (?, ?, ?)", content)
                if written and take.trace.decoding is not None:
                    decoding = take.id, json_text(take.trace.decoding.to_json())
                    connection.execute("INSERT OR REPLACE INTO decodings VALUES (?, ?)", decoding)
                connection.execute(f"INSERT OR REPLACE INTO takes VALUES ({', '.join('?' * len(row))})", row)
                connection.execute(f"DELETE FROM failures WHERE {_OF_CELL}", row[:4])
                # Committed here, so that a disk too full for the row also removes the file.
                connection.execute("COMMIT")
            except BaseException:
                if written:
                    path.unlink(missing_ok=True)
                raise
        return self.take(cell)

    def decoding(self, take: str) -> DecodingTrace | None:
        """Decoding trace of a take; ``None`` for models without tokens, and studies older than stored traces."""
        if self._version < _WITH_DECODINGS:
            return None
        found = self._read(
            lambda row: DecodingTrace.from_json(parsed_json(row[0])),
            "SELECT content FROM decodings WHERE take = ?",
            (take,),
        )
        return found[0] if found else None

    def cells(self) -> set[Cell]:
        """Finished cells, without those whose audio was lost."""
        return {one.cell for one in self.takes() if self.is_heard(one)}

    def lost(self) -> set[Cell]:
        """Finished cells whose audio was lost or damaged since."""
        return {one.cell for one in self.takes() if not self.is_heard(one)}

    def is_heard(self, take: StoredTake) -> bool:
        """Whether a take's audio is intact. Later rounds have none of their own."""
        return take.cell.round != 0 or files.is_wav(self.audio_path(take.take), take.frames, take.sample_rate)

    def takes(self) -> tuple[StoredTake, ...]:
        return self._read(_take, f"SELECT {', '.join(_COLUMNS)} FROM takes ORDER BY round, created")

    def take(self, cell: Cell) -> StoredTake | None:
        found = self._read(_take, f"SELECT {', '.join(_COLUMNS)} FROM takes WHERE {_OF_CELL}", astuple(cell))
        return found[0] if found else None

    def spectrogram(self, take: str) -> np.ndarray | None:
        """Log-mel frames (frames, bands) of a baseline's take, or ``None`` if not stored."""

        def parse(row: tuple) -> np.ndarray:
            try:
                return np.frombuffer(zlib.decompress(row[1]), "<f4").reshape(row[0], -1)
            except zlib.error as error:
                raise ValueError(f"the spectrogram of {take} is broken: {error}") from error

        found = self._read(parse, "SELECT frames, content FROM spectrograms WHERE take = ?", (take,))
        return found[0] if found else None

    def audio(self, take: str) -> np.ndarray:
        """Samples of a take, float32, (n,)."""
        return read_audio(self.audio_path(take))[0]

    # --- Artefacts, references, failures, trials ----------------------------------------------------------------------
    def add_artefact(self, prepared: Prepared) -> None:
        content = json_text(_kind(prepared.task.technique).write(prepared.artefact))
        self._write("INSERT OR IGNORE INTO tables VALUES (?, ?, ?)", (prepared.task.key, content, prepared.seconds))

    def artefacts(self) -> dict[str, Artefact]:
        rows = self._rows("SELECT setting, content FROM tables")
        with self._problems("read"):
            candidates = {one.key: one.candidate for one in self.settings()}
            return {key: _kind(candidates[key].unprepared).read(parsed_json(one), "artefact") for key, one in rows}

    @property
    def preparing_seconds(self) -> float:
        ((seconds,),) = self._rows("SELECT coalesce(sum(seconds), 0.0) FROM tables")
        return seconds

    def add_reference(self, referred: ReferenceMeasured) -> None:
        """Store the judges' verdicts on the reference speech of an utterance."""
        verdicts = json_text([one.to_json() for one in referred.verdicts])
        values = referred.task.spoken.key, verdicts, referred.why_not
        self._write("INSERT OR REPLACE INTO refs VALUES (?, ?, ?)", values)

    def references(self) -> dict[str, tuple[tuple[Verdict, ...], str]]:
        """By utterance: the judges' verdicts on the reference speech, and the reason if it is missing."""
        query = "SELECT utterance, verdicts, why_not FROM refs"
        return dict(self._read(lambda row: (row[0], (_verdicts(row[1]), row[2])), query))

    def add_failure(self, cell: Cell, sentence: str) -> None:
        """Record a failed take and its reason. The next run tries again."""
        self._write("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?)", (*astuple(cell), sentence))

    def failures(self) -> dict[Cell, str]:
        rows = self._rows("SELECT setting, utterance, seed, round, sentence FROM failures")
        return {Cell(*row[:4]): row[4] for row in rows}

    def put_trial(self, trial: StoredTrial) -> None:
        values = trial.number, json_text(dict(trial.params)), trial.setting, trial.state, json_text(dict(trial.outcome))
        self._write("INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?)", values)

    def trials(self) -> tuple[StoredTrial, ...]:
        return self._read(
            lambda row: StoredTrial(row[0], table_of(row[1]), row[2], row[3], table_of(row[4])),
            "SELECT number, params, setting, state, outcome FROM trials ORDER BY number",
        )


def pronunciations_in(folder: Path) -> str | None:
    """Words and their pronunciations with which the study in ``folder`` was begun; ``None``: unknown."""
    with suppress(PlainError), Store(folder, read_only=True) as store:
        return next((str(one.setting.options.get("pronunciations") or "") for one in store.settings()), None)
    return None


def read_audio(path: Path) -> tuple[np.ndarray, int]:
    """Samples, float32, (n,), and their rate. Raises :class:`StudyError`."""
    import soundfile  # Imported here: too slow for a window.

    with readable(StudyError, f"The audio {path} of the study could not be read", "", RuntimeError):
        require_regular(path)
        return soundfile.read(path, dtype="float32")


_OF_CELL = "setting = ? AND utterance = ? AND seed = ? AND round = ?"
_COLUMNS = tuple(one.name for kind in (Cell, StoredTake) for one in fields(kind) if one.name != "cell")
_READ: dict[str, Callable[[str], object]] = {
    "voice": without_folder,
    "measurements": lambda text: record(Measurements, parsed_json(text)),
    "metrics": lambda text: record(Metrics, parsed_json(text)),
    "verdicts": lambda text: _verdicts(text),
    "notes": texts_of,
}
"""Readers of columns that differ from a take's fields."""


@lru_cache(maxsize=65_536)
def _take(row: tuple) -> StoredTake:
    """Cached, so that followers of a study parse each take only once."""
    values: dict[str, Any] = dict(zip(_COLUMNS[4:], row[4:], strict=True))
    return StoredTake(Cell(*row[:4]), **values | {name: read(values[name]) for name, read in _READ.items()})


def _add_settings(connection: sqlite3.Connection, candidates: Iterable[Candidate]) -> None:
    (place,) = connection.execute("SELECT coalesce(max(place) + 1, 0) FROM settings").fetchone()
    for number, one in enumerate(candidates):
        connection.execute(
            "INSERT INTO settings (key, place, name, origin, baseline, setting) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET name = excluded.name WHERE excluded.name != ''",
            (one.key, place + number, one.name, one.origin, one.baseline, json_text(one.setting.to_json())),
        )


def _verdicts(text: str) -> tuple[Verdict, ...]:
    found = parsed_json(text)
    if not isinstance(found, list):
        raise ValueError(f"{shown(found)} is no list of verdicts")
    return tuple(map(Verdict.from_json, found))


def _kind(name: str) -> ArtefactType:
    kind = technique(name).artefact
    if kind is None:
        raise ValueError(f"{shown(name)} has no artefact")
    return kind
