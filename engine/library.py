"""The take library: what has been tried, in SQLite, with each take's audio as a WAV file beside it. Torch-free.

A take's file and its row are written within one write transaction, the file first. So no row ever lacks its file, and a
file without a row is what a crash left behind; such files are removed when the library is opened, which takes the same
lock and hence never meets a take that is being saved.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np

from engine import files
from engine.errors import LibraryError, SettingError
from engine.setting import Setting
from engine.take import DecodingTrace, Measurements, Take, Trace

DATABASE = "takes.sqlite"
AUDIO = "audio"
_APPLICATION = 0x50524554
"""Says in the file's header whose database it is ("PRET")."""
_PATIENCE_SECONDS = 5.0
_AUDIO_NAME = re.compile(r"[0-9a-f]{32}\.wav")

_MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE takes (
        id TEXT PRIMARY KEY,
        created TEXT NOT NULL,
        text TEXT NOT NULL,
        voice TEXT NOT NULL,
        model TEXT NOT NULL,
        setting TEXT NOT NULL,
        sample_rate INTEGER NOT NULL,
        frames INTEGER NOT NULL,
        measurements TEXT NOT NULL,
        trace TEXT NOT NULL,
        label TEXT NOT NULL,
        starred INTEGER NOT NULL,
        fidelity_to TEXT NOT NULL,
        log_mel_distance REAL,
        notes TEXT NOT NULL,
        machine TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX takes_by_creation ON takes (created);
    """,
)
"""Statements that lead from each schema version to the next; a new version appends to them and changes none."""
SCHEMA = len(_MIGRATIONS)
_SUMMARY = (
    "id, created, text, voice, setting, sample_rate, frames, measurements, label, starred, fidelity_to, "
    "log_mel_distance, notes, machine"
)


@dataclass(frozen=True)
class TakeSummary:
    """A take without its audio and trace; fields as in :class:`Take`."""

    id: str
    created: str
    text: str
    voice: str
    setting: Setting
    sample_rate: int
    frames: int
    """Number of samples."""
    measurements: Measurements = field(repr=False)
    label: str = ""
    starred: bool = False
    fidelity_to: str = ""
    log_mel_distance: float | None = None
    notes: tuple[str, ...] = ()
    machine: str = ""

    @property
    def seconds(self) -> float:
        """Length of the audio in seconds."""
        return self.frames / self.sample_rate


class LibraryDamaged(LibraryError):
    """The database cannot be read at all; :meth:`Library.set_aside` makes room for a new one."""


class Library:
    """The takes in one folder. Any thread may call it; calls take turns.

    ``damage`` says what is wrong with a library that can still be read, but not written; it is ``""`` for a sound one.
    Every method raises :class:`LibraryError` that says what is wrong and what to do.
    """

    def __init__(self, folder: str | Path, read_only: bool = False) -> None:
        self.folder = Path(folder)
        self.damage = ""
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._read_only = read_only
        with self._problems("opened"):
            if not read_only:
                (self.folder / AUDIO).mkdir(parents=True, exist_ok=True)
            self._connection = self._connect()
            try:
                self._prepare()
            except BaseException:
                self.close()
                raise

    # --- Opening and closing --------------------------------------------------------------------------------------
    def _connect(self) -> sqlite3.Connection:
        path = self.folder / DATABASE
        if not self._read_only:
            return sqlite3.connect(path, _PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
        if not path.exists():
            raise LibraryError(f"There is no take library in {self.folder}; choose another folder.")
        # A folder that may not be written has no place for the log that shared reading needs: nobody else writes there.
        shared = "mode=ro" if (self.folder / f"{DATABASE}-wal").exists() else "mode=ro&immutable=1"
        address = f"{path.resolve().as_uri()}?{shared}"
        return sqlite3.connect(address, _PATIENCE_SECONDS, isolation_level=None, check_same_thread=False, uri=True)

    def _prepare(self) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and application != _APPLICATION:
            raise LibraryError(f"{self.folder / DATABASE} belongs to another program; choose another folder for takes.")
        if version > SCHEMA:
            raise LibraryError(
                f"The take library in {self.folder} was written by a newer Paretone (schema {version}, this one knows "
                f"{SCHEMA}); update Paretone, or choose another folder for takes."
            )
        self.damage = self._find_damage()
        if self.damage:
            self._read_only = True
        if self._read_only:
            return
        self._connection.execute("PRAGMA journal_mode = WAL")
        # A take is worth waiting for the disk; nothing else is written often.
        self._connection.execute("PRAGMA synchronous = FULL")
        with self._writing():
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            for statements in _MIGRATIONS[version:]:
                for statement in filter(str.strip, statements.split(";")):
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {SCHEMA}")
            self._remove_orphans()

    def _find_damage(self) -> str:
        """What SQLite finds wrong with the file, or ``""``; raises its error when the file cannot be read at all."""
        found = [line for (line,) in self._connection.execute("PRAGMA quick_check(3)")]
        return "" if found == ["ok"] else "; ".join(" ".join(line.split()) for line in found)

    def _remove_orphans(self) -> None:
        kept = {f"{name}.wav" for (name,) in self._connection.execute("SELECT id FROM takes")}
        for path in (self.folder / AUDIO).iterdir():
            ours = path.name.startswith(files.TEMPORARY) or _AUDIO_NAME.fullmatch(path.name)
            if ours and path.name not in kept:
                path.unlink(missing_ok=True)

    @property
    def read_only(self) -> bool:
        """Whether takes can be read, but not added or changed."""
        return self._read_only

    def close(self) -> None:
        """Close the library; it cannot be used afterwards. Closing twice does no harm."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @classmethod
    def set_aside(cls, folder: str | Path) -> Path:
        """Move a damaged library, audio included, into a folder of its own beside it; its path. The next one opened in
        ``folder`` is empty. No library may be open there."""
        folder = Path(folder)
        backup = folder / f"damaged-{datetime.now():%Y%m%d-%H%M%S-%f}"
        try:
            backup.mkdir(parents=True)
            for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", AUDIO):
                if (folder / name).exists():
                    (folder / name).rename(backup / name)
        except OSError as error:
            raise LibraryError(f"The take library in {folder} could not be moved: {files.reason(error)}.") from error
        return backup

    # --- Reading --------------------------------------------------------------------------------------------------
    def summaries(
        self, model: str = "", starred: bool | None = None, words: str = "", limit: int | None = None
    ) -> tuple[TakeSummary, ...]:
        """Takes without their audio, newest first.

        Those of ``model``, with or without a star, and with every one of ``words`` in label, text or voice, where these
        are given; at most ``limit``.
        """
        conditions, values = [], []
        if model:
            conditions.append("model = ?")
            values.append(model)
        if starred is not None:
            conditions.append("starred = ?")
            values.append(int(starred))
        for word in words.split():
            conditions.append("instr(lower(label || ' ' || text || ' ' || voice), lower(?))")
            values.append(word)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        # The id settles the order of takes made within one millisecond.
        query = f"SELECT {_SUMMARY} FROM takes{where} ORDER BY created DESC, id DESC LIMIT ?"
        rows = self._rows(query, (*values, -1 if limit is None else limit))
        with self._problems("read"):
            return tuple(_summary(row) for row in rows)

    def summary(self, take: str) -> TakeSummary:
        """The take ``take`` without its audio."""
        rows = self._rows(f"SELECT {_SUMMARY} FROM takes WHERE id = ?", (take,))
        if not rows:
            raise self._unknown(take)
        with self._problems("read"):
            return _summary(rows[0])

    def load(self, take: str) -> Take:
        """The take ``take``, whole; its trace comes back without the spectrogram, which is not stored."""
        summary = self.summary(take)
        ((trace,),) = self._rows("SELECT trace FROM takes WHERE id = ?", (take,))
        values = {name: getattr(summary, name) for name in TakeSummary.__dataclass_fields__ if name != "frames"}
        with self._problems("read"):
            return Take(**values, samples=self.load_audio(take), trace=_trace(trace))

    def load_audio(self, take: str) -> np.ndarray:
        """The samples of the take ``take``, float32, (n,)."""
        import soundfile  # Imported here: it takes longer than a window may.

        path = self.audio_path(take)
        try:
            samples, _ = soundfile.read(path, dtype="float32")
        except (OSError, RuntimeError) as error:
            raise LibraryError(
                f"The audio of this take, {path}, could not be read ({error}); delete the take."
            ) from error
        return samples

    def audio_path(self, take: str) -> Path:
        """Where the audio of the take ``take`` lies."""
        return self.folder / AUDIO / f"{take}.wav"

    def __len__(self) -> int:
        ((count,),) = self._rows("SELECT count(*) FROM takes", ())
        return count

    def __contains__(self, take: str) -> bool:
        return bool(self._rows("SELECT 1 FROM takes WHERE id = ?", (take,)))

    # --- Writing --------------------------------------------------------------------------------------------------
    def add(self, take: Take) -> TakeSummary:
        """Keep ``take``: either all of it or, when this raises, nothing."""
        path = self.audio_path(take.id)
        if not _AUDIO_NAME.fullmatch(path.name):
            raise LibraryError(f"The take's id must be 32 hexadecimal digits, not {take.id!r}.")
        row = (
            take.id,
            take.created,
            take.text,
            take.voice,
            take.setting.model,
            _json(take.setting.to_json()),
            take.sample_rate,
            len(take.samples),
            _json(asdict(take.measurements)),
            _json(_trace_json(take.trace)),
            take.label,
            int(take.starred),
            take.fidelity_to,
            take.log_mel_distance,
            _json(take.notes),
            take.machine,
        )
        with self._problems("written"), self._writing():
            if take.id in self:
                raise LibraryError(f"The take {take.id} is in the library already.")
            try:
                files.write_atomically(path, files.wav(take.samples, take.sample_rate))
                self._connection.execute(f"INSERT INTO takes VALUES ({', '.join('?' * len(row))})", row)
                # Committed here, so that a disk that is too full for the row takes the file away too.
                self._connection.execute("COMMIT")
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        return self.summary(take.id)

    def star(self, take: str, starred: bool) -> None:
        """Star the take ``take``, or take its star away."""
        self._change(take, "starred = ?", int(starred))

    def label(self, take: str, label: str) -> None:
        """Name the take ``take``."""
        self._change(take, "label = ?", label)

    def delete(self, take: str) -> None:
        """Forget the take ``take``, audio included."""
        with self._problems("written"):
            with self._writing():
                if not self._connection.execute("DELETE FROM takes WHERE id = ?", (take,)).rowcount:
                    raise self._unknown(take)
            # A crash in between leaves a file without a row, which the next opening removes.
            self.audio_path(take).unlink(missing_ok=True)

    def _change(self, take: str, assignments: str, *values: object) -> None:
        with self._problems("written"), self._writing():
            changed = self._connection.execute(f"UPDATE takes SET {assignments} WHERE id = ?", (*values, take))
            if not changed.rowcount:
                raise self._unknown(take)

    # --- Common ---------------------------------------------------------------------------------------------------
    def _rows(self, query: str, values: tuple[object, ...]) -> list[tuple]:
        with self._problems("read"), self._lock:
            return self._open_connection().execute(query, values).fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One write transaction; no other process writes meanwhile."""
        with self._lock:
            connection = self._open_connection()
            if self._read_only:
                why = f" because it is damaged ({self.damage})" if self.damage else ""
                raise LibraryError(
                    f"The take library in {self.folder} can only be read{why}; "
                    "set it aside to start a new one, or choose another folder."
                )
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                if connection.in_transaction:
                    connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise LibraryError(f"The take library in {self.folder} has been closed.")
        return self._connection

    @contextlib.contextmanager
    def _problems(self, done: str) -> Iterator[None]:
        """Turn what SQLite and the system say into a :class:`LibraryError`; ``done`` is what could not be done."""
        start = f"The take library in {self.folder} could not be {done}"
        try:
            yield
        except OSError as error:
            raise LibraryError(f"{start}: {files.reason(error)}.") from error
        except sqlite3.OperationalError as error:
            raise LibraryError(f"{start}: {_OPERATIONAL.get(error.sqlite_errorcode & 0xFF, str(error))}.") from error
        except (sqlite3.DatabaseError, SettingError, ValueError, KeyError, TypeError) as error:
            raise LibraryDamaged(
                f"{start}: {DATABASE} is damaged ({error}). Set it aside, where its audio stays playable, and go on "
                "with a new one."
            ) from error

    def _unknown(self, take: str) -> LibraryError:
        return LibraryError(f"The take library in {self.folder} has no take {take!r}; it may have been deleted.")


_OPERATIONAL = {
    sqlite3.SQLITE_BUSY: "another program is writing to it; close that or wait a moment",
    sqlite3.SQLITE_CANTOPEN: "its folder may not be used; choose another folder",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk is full or failing; free some space or choose another folder",
    sqlite3.SQLITE_READONLY: "you may not write there; choose another folder",
}
_TRACE = ("step_seconds", "chunk_texts", "chunk_seconds", "computed")


def _summary(row: tuple) -> TakeSummary:
    (one, created, text, voice, setting, rate, frames, measured, label, starred, fidelity, distance, notes, machine) = (
        row
    )
    return TakeSummary(
        one,
        created,
        text,
        voice,
        _setting(setting),
        rate,
        frames,
        Measurements(**json.loads(measured)),
        label,
        bool(starred),
        fidelity,
        distance,
        tuple(json.loads(notes)),
        machine,
    )


@lru_cache(maxsize=4096)
def _setting(text: str) -> Setting:
    """Takes share their settings: reading each only once makes long histories open quickly."""
    return Setting.from_json(json.loads(text))


def _trace_json(trace: Trace) -> dict:
    data = {name: getattr(trace, name) for name in _TRACE}
    return data if trace.decoding is None else {**data, "decoding": trace.decoding.to_json()}


def _trace(text: str) -> Trace:
    data = json.loads(text)
    steps = tuple(tuple(chunk) for chunk in data["step_seconds"])
    computed = tuple(tuple(chunk) for chunk in data.get("computed", ()))
    decoding = DecodingTrace.from_json(data["decoding"]) if "decoding" in data else None
    return Trace(steps, tuple(data["chunk_texts"]), tuple(data["chunk_seconds"]), computed=computed, decoding=decoding)


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
