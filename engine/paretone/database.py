"""A database with files next to it: opening, checking, migrating, writing and setting aside. Torch-free.

It is an SQLite file with a schema version, migrated step by step, and an application id in its header. A damaged but
readable one is opened read-only; an unreadable one can be set aside with its files. Its files and the folder of its
recordings are never symbolic links, which could point to anybody's data; the folder that holds all of them may be one.
Failures are reported in a sentence, as the database's own kind of error.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from paretone import files
from paretone.errors import PlainError, SettingError
from paretone.reading import first_line, parsed_json, require_regular, shortened, shown

Row = TypeVar("Row")
AUDIO = "audio"
PATIENCE_SECONDS = 5.0
AUDIO_NAME = re.compile(r"[0-9a-f]{32}\.wav")


class Database:
    """Base class of databases. Thread-safe: calls are serialised. ``damage`` describes the fault of a database that is
    readable but not writable; ``""`` otherwise."""

    title: ClassVar[str]
    """Name in sentences: ``take library``."""
    contents: ClassVar[str]
    """Content in sentences: ``takes``."""
    file: ClassVar[str]
    """File name in the folder."""
    application: ClassVar[int]
    """Application id in the file's header."""
    error: ClassVar[type[PlainError]]
    damaged: ClassVar[type[PlainError]]
    """Error for an unreadable database; a subclass of ``error``."""
    migrations: ClassVar[tuple[str, ...]]
    """Statements from each schema version to the next; a new version appends and changes none."""
    kept: ClassVar[str]
    """Query for the ids of takes whose recordings are kept."""

    def __init__(self, folder: str | Path, read_only: bool = False) -> None:
        self.folder = Path(folder)
        self.damage = ""
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._read_only = read_only
        self._version = 0
        """Schema version; older than the current one if the database is read-only and cannot be migrated."""
        with self._problems("opened"):
            if not read_only:
                self._require_no_links()
                (self.folder / AUDIO).mkdir(parents=True, exist_ok=True)
            self._connection = self._connect()
            try:
                self._prepare()
            except BaseException:
                self.close()
                raise

    def _require_no_links(self) -> None:
        """Raise the database's own error if writing or deleting would follow a symbolic link."""
        for name in self._names():
            if (self.folder / name).is_symlink():
                raise self.error(
                    f"{self.folder / name} is a symbolic link, and nothing is written or deleted through one; put the "
                    f"file or folder itself in its place, or choose another folder for {self.contents}."
                )

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        """Names of its files, SQLite's included, and of the folder of its recordings."""
        return *(f"{cls.file}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")), AUDIO

    def audio_path(self, take: str) -> Path:
        return audio_path(self.folder, take)

    # --- Opening and closing ------------------------------------------------------------------------------------------
    def _connect(self) -> sqlite3.Connection:
        path = self.folder / self.file
        self._require_kinds()
        if not self._read_only:
            return sqlite3.connect(path, PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
        if not path.exists():
            raise self.error(f"There is no {self.title} in {self.folder}; choose another folder.")
        # A read-only folder has no place for the log of shared reading; nobody else writes there.
        shared = "mode=ro" if (self.folder / f"{self.file}-wal").exists() else "mode=ro&immutable=1"
        address = f"{path.resolve().as_uri()}?{shared}"
        return sqlite3.connect(address, PATIENCE_SECONDS, isolation_level=None, check_same_thread=False, uri=True)

    def _require_kinds(self) -> None:
        """Raise the error of a damaged database for a pipe, folder or broken link, and :class:`OSError` for an
        unreadable file. SQLite would wait forever for a pipe's writer, and calls a folder a failing disk."""
        for name in self._names():
            path, kind = self.folder / name, ""
            if name == AUDIO:
                kind = "it is no folder" if path.exists() and not path.is_dir() else ""
            elif path.exists():
                try:
                    require_regular(path)
                except OSError as error:
                    if path.is_file():
                        raise
                    kind = (error.strerror or "it is no file").partition(";")[0]
            elif path.is_symlink():
                kind = "it is a symbolic link that leads nowhere"
            if kind:
                raise self.damaged(f"The {self.title} in {self.folder} could not be opened: {name}: {kind}. {_ASIDE}")

    def _prepare(self) -> None:
        migrations, connection = self.migrations, self._open
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and application != self.application:
            raise self.error(
                f"{self.folder / self.file} belongs to another program; choose another folder for {self.contents}."
            )
        if version > len(migrations):
            raise self.error(
                f"The {self.title} in {self.folder} was written by a newer Paretone (schema {version}, this one knows "
                f"{len(migrations)}); update Paretone, or choose another folder for {self.contents}."
            )
        # ``ok`` if intact; raises SQLite's error if the file is unreadable.
        found = [line for (line,) in self._open.execute("PRAGMA quick_check(3)")]
        self.damage = "" if found == ["ok"] else "; ".join(" ".join(line.split()) for line in found)
        self._require_types()
        self._read_only = self._read_only or bool(self.damage)
        self._version = version
        if self._read_only:
            return
        connection.execute("PRAGMA journal_mode = WAL")
        # A take is worth waiting for the disk; other writes are rare.
        connection.execute("PRAGMA synchronous = FULL")
        with self._writing():
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            for statements in migrations[version:]:
                for statement in filter(str.strip, statements.split(";")):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {self.application}")
            connection.execute(f"PRAGMA user_version = {len(migrations)}")
            self._remove_orphans()
        self._version = len(migrations)

    def _require_types(self) -> None:
        """Raise :class:`ValueError` if a column holds values of another than its declared type: SQLite stores any."""
        connection = self._open
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            declared = {
                name: (*_TYPES[kind], *(() if required else ("null",)))
                for _, name, kind, required, _, _ in connection.execute(f"PRAGMA table_info({_quoted(table)})")
                if kind in _TYPES
            }
            if not declared:
                continue
            strange = ", ".join(
                f"max(CASE WHEN typeof({_quoted(name)}) NOT IN ({', '.join(map(repr, kinds))}) "
                f"THEN typeof({_quoted(name)}) "
                # SQLite has no literal for infinity, but reads too large numbers as infinite.
                f"WHEN typeof({_quoted(name)}) = 'real' AND abs({_quoted(name)}) = 9e999 THEN 'infinite' END)"
                for name, kinds in declared.items()
            )
            try:
                found = connection.execute(f"SELECT {strange} FROM {_quoted(table)}").fetchone()
            except sqlite3.DatabaseError:
                if self.damage:  # Read whatever is readable.
                    continue
                raise
            for name, kind in zip(declared, found, strict=True):
                if kind is not None:
                    raise ValueError(f"{table}.{name} holds a value of type {kind}")

    def _remove_orphans(self) -> None:
        kept = {f"{name}.wav" for (name,) in self._open.execute(self.kept)}
        for path in (self.folder / AUDIO).iterdir():
            ours = path.name.startswith(files.TEMPORARY) or AUDIO_NAME.fullmatch(path.name)
            # For links, only the link is deleted.
            if ours and path.name not in kept and (path.is_symlink() or path.is_file()):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the database, for good. Closing twice is harmless."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @classmethod
    def set_aside(cls, folder: str | Path) -> Path:
        """Move a damaged, closed database with its audio into a separate folder next to it; returns its path. The next
        one opened in ``folder`` is empty."""
        folder = Path(folder)
        backup = folder / f"damaged-{datetime.now():%Y%m%d-%H%M%S-%f}"
        with files.explained(cls.error, f"The {cls.title} in {folder} could not be moved"):
            backup.mkdir(parents=True)
            for name in cls._names():
                if os.path.lexists(folder / name):
                    (folder / name).rename(backup / name)
        return backup

    # --- Reading and writing ------------------------------------------------------------------------------------------
    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple]:
        with self._problems("read"), self._lock:
            return self._open.execute(query, values).fetchall()

    def _read(self, parse: Callable[[tuple], Row], query: str, values: tuple[object, ...] = ()) -> tuple[Row, ...]:
        rows = self._rows(query, values)
        with self._problems("read"):
            return tuple(map(parse, rows))

    def _write(self, statement: str, values: tuple[object, ...] = ()) -> int:
        """One statement in its own transaction; returns the number of changed rows."""
        with self._written() as connection:
            return connection.execute(statement, values).rowcount

    @contextlib.contextmanager
    def _written(self) -> Iterator[sqlite3.Connection]:
        """One write transaction, whose errors say that writing failed."""
        with self._problems("written"), self._writing() as connection:
            yield connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One write transaction that excludes other processes."""
        with self._lock:
            connection = self._open
            if self._read_only:
                why = f" because it is damaged ({self.damage})" if self.damage else ""
                raise self.error(
                    f"The {self.title} in {self.folder} can only be read{why}; "
                    "set it aside to start a new one, or choose another folder."
                )
            self._require_no_links()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                if connection.in_transaction:
                    connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @property
    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise self.error(f"The {self.title} in {self.folder} has been closed.")
        return self._connection

    @contextlib.contextmanager
    def _problems(self, done: str) -> Iterator[None]:
        """Translate errors of SQLite and the system into our own; ``done``: the failed action."""
        start = f"The {self.title} in {self.folder} could not be {done}"
        try:
            yield
        except OSError as error:
            where = f" {Path(error.filename).name}:" if error.errno == errno.EINVAL and error.filename else ""
            raise self.error(f"{start}:{where} {files.reason(error)}.") from error
        except (sqlite3.DatabaseError, SettingError, ValueError, KeyError, TypeError) as error:
            # SQLite's generic error means a missing table or column.
            if isinstance(error, sqlite3.OperationalError) and _code(error) != sqlite3.SQLITE_ERROR:
                raise self.error(f"{start}: {_OPERATIONAL.get(_code(error), shortened(str(error)))}.") from error
            raise self.damaged(f"{start}: {self.file} is damaged ({first_line(error)}). {_ASIDE}") from error


_ASIDE = "Set it aside, where its audio stays playable, and start a new one."
_OPERATIONAL = {
    sqlite3.SQLITE_BUSY: "another program is writing to it; close that or wait a moment",
    sqlite3.SQLITE_CANTOPEN: "its folder may not be used; choose another folder",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk is full or failing; free some space or choose another folder",
    sqlite3.SQLITE_READONLY: "you may not write there; choose another folder",
}
_TYPES = {"TEXT": ("text",), "INTEGER": ("integer",), "REAL": ("real", "integer"), "BLOB": ("blob",)}
"""Types of values, by declared column type."""


def _quoted(name: str) -> str:
    return f'"{name.replace(chr(34), chr(34) * 2)}"'


def _code(error: sqlite3.Error) -> int:
    """SQLite's error code; 0 for errors of Python's module without one, such as a text that is not UTF-8."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def audio_path(folder: Path, take: str) -> Path:
    return folder / AUDIO / f"{take}.wav"


def table_of(text: str) -> dict[str, Any]:
    """A mapping stored in a row. Raises :class:`ValueError`."""
    data = parsed_json(text)
    if not isinstance(data, dict):
        raise ValueError(f"{shown(data)} is no table of fields")
    return data


def texts_of(text: str) -> tuple[str, ...]:
    """A list of texts stored in a row. Raises :class:`ValueError`."""
    data = parsed_json(text)
    if not isinstance(data, list) or not all(isinstance(one, str) for one in data):
        raise ValueError(f"{shown(data)} is no list of texts")
    return tuple(data)


def json_text(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


# --- Locks between processes ------------------------------------------------------------------------------------------
# SQLite holds the lock: it works alike on all systems, and a dead process releases it.
_TRY_SECONDS = 0.5


class LockedError(Exception):
    """Another process holds the lock."""


class UnusableError(OSError):
    """The lock cannot be taken."""


@contextmanager
def held(path: Path, waiting: Callable[[], object] | None = None) -> Iterator[None]:
    """Hold ``path``, a file that is created if missing, while the block runs. If another process holds it, this waits
    and calls ``waiting``, which may raise, twice a second; without ``waiting`` it raises :class:`LockedError` at once.
    Raises :class:`UnusableError` if ``path`` cannot be created."""
    lock = None
    try:
        try:
            if path.exists():
                require_regular(path)  # SQLite would wait forever at a pipe.
            lock = sqlite3.connect(path, timeout=_TRY_SECONDS if waiting else 0.0, isolation_level=None)
            while not _taken(lock):
                if waiting is None:
                    raise LockedError(path)
                waiting()
        except (OSError, sqlite3.Error) as error:
            why = str(getattr(error, "strerror", None) or error).partition(";")[0]
            raise UnusableError(f"{path} could not be held: {why}") from error
        yield
    finally:
        if lock is not None:
            lock.close()


def _taken(lock: sqlite3.Connection) -> bool:
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
