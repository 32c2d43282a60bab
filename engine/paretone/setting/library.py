"""The take library in SQLite, with each take's audio as a WAV file next to it. Torch-free.

A take's file and row are written within one write transaction, the file first. So every row has its file; a file
without a row is left from a crash and removed when the library opens, under the same lock: never while one is saved.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from paretone import files
from paretone.database import AUDIO_NAME, Database, json_text, texts_of
from paretone.errors import LibraryError
from paretone.fields import record
from paretone.models.voices import without_folder
from paretone.reading import parsed_json, readable, require_regular, shown
from paretone.setting.setting import setting_of
from paretone.setting.take import (
    EXAMPLE,
    SERVED,
    AnyTake,
    DecodingTrace,
    DemaskingTrace,
    Measurements,
    Metrics,
    Take,
    Trace,
    repeated,
)

DATABASE = "takes.sqlite"

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
    "ALTER TABLE takes ADD COLUMN metrics TEXT NOT NULL DEFAULT '{}'",
    "ALTER TABLE takes ADD COLUMN checkpoint TEXT NOT NULL DEFAULT ''",
    """
    ALTER TABLE takes ADD COLUMN unfinished TEXT NOT NULL DEFAULT '';
    ALTER TABLE takes ADD COLUMN repeats TEXT NOT NULL DEFAULT '[]';
    """,
    "ALTER TABLE takes ADD COLUMN remark TEXT NOT NULL DEFAULT ''",
)
SCHEMA = len(_MIGRATIONS)
_LATER = (
    ("metrics", 2, "'{}'"),
    ("checkpoint", 3, "''"),
    ("unfinished", 4, "''"),
    ("repeats", 4, "'[]'"),
    ("remark", 5, "''"),
)
"""Columns added later: first schema version, and value of older takes."""


@dataclass(frozen=True)
class TakeSummary(AnyTake):
    """A take without audio and trace."""

    frames: int

    @property
    def seconds(self) -> float:
        return self.frames / self.sample_rate

    @property
    def is_reply(self) -> bool:
        """Whether a server sent it, so that its figures are not those of a setting."""
        return self.measurements.device == SERVED

    @property
    def is_example(self) -> bool:
        """Whether it came with Paretone, so that its figures are not the user's."""
        return EXAMPLE in self.notes

    def whole(self, samples: np.ndarray, trace: Trace) -> Take:
        kept = {name: getattr(self, name) for name in _COLUMNS if name != "frames"}
        return Take(**kept, samples=samples, trace=trace)


_COLUMNS = tuple(one.name for one in fields(TakeSummary))


class LibraryDamaged(LibraryError):
    """The database is unreadable; :meth:`Library.set_aside` makes room for a new one."""


class Library(Database):
    """The takes in one folder. Thread-safe: calls are serialised. ``damage`` describes the fault of a library that is
    readable but not writable; ``""`` otherwise. Every method raises :class:`LibraryError` with fault and remedy."""

    title = "take library"
    contents = "takes"
    file = DATABASE
    application = 0x50524554
    """"PRET"."""
    error = LibraryError
    damaged = LibraryDamaged
    migrations = _MIGRATIONS
    kept = "SELECT id FROM takes"

    @property
    def _columns(self) -> str:
        instead = {name: usual for name, since, usual in _LATER if self._version < since}
        return ", ".join(instead.get(name, name) for name in _COLUMNS)

    # --- Reading --------------------------------------------------------------------------------------------------
    def summaries(self) -> tuple[TakeSummary, ...]:
        """All takes without audio, newest first."""
        # The id orders takes made within one millisecond.
        return self._read(_summary, f"SELECT {self._columns} FROM takes ORDER BY created DESC, id DESC", ())

    def summary(self, take: str) -> TakeSummary:
        found = self._read(_summary, f"SELECT {self._columns} FROM takes WHERE id = ?", (take,))
        if not found:
            raise self._unknown(take)
        return found[0]

    def load(self, take: str) -> Take:
        """A whole take; its trace lacks the spectrogram, which is not stored."""
        summary = self.summary(take)
        ((trace,),) = self._rows("SELECT trace FROM takes WHERE id = ?", (take,))
        with self._problems("read"):
            return summary.whole(self.load_audio(take), _trace(trace))

    def load_audio(self, take: str) -> np.ndarray:
        """Samples of a take, float32, (n,)."""
        import soundfile  # Imported here: too slow for a window.

        path = self.audio_path(take)
        with readable(LibraryError, f"The take's audio, {path}, could not be read", "delete the take", RuntimeError):
            require_regular(path)
            samples, _ = soundfile.read(path, dtype="float32")
        return samples

    def __len__(self) -> int:
        ((count,),) = self._rows("SELECT count(*) FROM takes", ())
        return count

    def __contains__(self, take: str) -> bool:
        return bool(self._rows("SELECT 1 FROM takes WHERE id = ?", (take,)))

    # --- Writing --------------------------------------------------------------------------------------------------
    def add(self, take: Take) -> TakeSummary:
        """Store ``take`` atomically."""
        path = self.audio_path(take.id)
        if not AUDIO_NAME.fullmatch(path.name):
            raise LibraryError(f"The take's id must be 32 hexadecimal digits, not {shown(take.id)}.")
        row = (
            take.id,
            take.created,
            take.text,
            take.voice,
            take.setting.model,
            json_text(take.setting.to_json()),
            take.sample_rate,
            len(take.samples),
            json_text(asdict(take.measurements)),
            json_text(_trace_json(take.trace)),
            take.label,
            int(take.starred),
            take.fidelity_to,
            take.log_mel_distance,
            json_text(take.notes),
            take.machine,
            json_text(asdict(take.metrics)),
            take.checkpoint,
            take.unfinished,
            json_text([asdict(one) for one in take.repeats]),
            take.remark,
        )
        with self._written() as connection:
            if take.id in self:
                raise LibraryError(f"The take {take.id} is in the library already.")
            try:
                files.write_atomically(path, files.wav(take.samples, take.sample_rate))
                connection.execute(f"INSERT INTO takes VALUES ({', '.join('?' * len(row))})", row)
                # Committed here, so that a disk too full for the row also removes the file.
                connection.execute("COMMIT")
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        return self.summary(take.id)

    def star(self, take: str, starred: bool) -> None:
        """Set or remove a take's star."""
        self._change(take, "starred = ?", int(starred))

    def label(self, take: str, label: str) -> None:
        self._change(take, "label = ?", label)

    def remark(self, take: str, remark: str) -> None:
        """Set the user's note on a take; its words with ``#`` are tags."""
        self._change(take, "remark = ?", remark)

    def measure(self, take: str, figures: Mapping[str, float]) -> TakeSummary:
        """Store further ``figures`` of a take, by names of :class:`Metrics`."""
        self._change(take, "metrics = ?", json_text(asdict(replace(self.summary(take).metrics, **figures))))
        return self.summary(take)

    def repeat(self, take: str, runs: Sequence[Measurements]) -> TakeSummary:
        """Store the measurements of repeated ``runs`` of a take, with those of earlier repeats."""
        known = repeated(self.summary(take), runs)
        self._change(
            take,
            "measurements = ?, repeats = ?",
            json_text(asdict(known.measurements)),
            json_text([asdict(one) for one in known.repeats]),
        )
        return self.summary(take)

    def delete(self, take: str) -> None:
        if not self._write("DELETE FROM takes WHERE id = ?", (take,)):
            raise self._unknown(take)
        with self._problems("written"):
            # A crash here leaves a file without a row, which the next opening removes.
            self.audio_path(take).unlink(missing_ok=True)

    def _change(self, take: str, assignments: str, *values: object) -> None:
        if not self._write(f"UPDATE takes SET {assignments} WHERE id = ?", (*values, take)):
            raise self._unknown(take)

    def _unknown(self, take: str) -> LibraryError:
        return LibraryError(f"The take library in {self.folder} has no take {shown(take)}; it may have been deleted.")


_TRACE = ("step_seconds", "chunk_texts", "chunk_seconds", "computed")


_READ: dict[str, Callable[[Any], object]] = {
    "voice": without_folder,
    "setting": setting_of,
    "measurements": lambda text: record(Measurements, parsed_json(text)),
    "starred": bool,
    "notes": texts_of,
    "metrics": lambda text: record(Metrics, parsed_json(text)),
    "repeats": lambda text: tuple(record(Measurements, one) for one in parsed_json(text)),
}
"""Readers of columns that differ from a summary's fields."""


def _summary(row: tuple) -> TakeSummary:
    values = dict(zip(_COLUMNS, row, strict=True))
    return TakeSummary(**(values | {name: read(values[name]) for name, read in _READ.items()}))


def _trace_json(trace: Trace) -> dict:
    data = {name: getattr(trace, name) for name in _TRACE}
    if trace.phones:
        data["phones"] = [list(one) for one in trace.phones]
    inner = {"decoding": trace.decoding, "demasking": trace.demasking}
    return data | {name: one.to_json() for name, one in inner.items() if one is not None}


def _trace(text: str) -> Trace:
    data = parsed_json(text)
    steps = tuple(tuple(chunk) for chunk in data["step_seconds"])
    computed = tuple(tuple(chunk) for chunk in data.get("computed", ()))
    return Trace(
        steps,
        tuple(data["chunk_texts"]),
        tuple(data["chunk_seconds"]),
        computed=computed,
        phones=tuple((str(name), float(start), float(end)) for name, start, end in data.get("phones", ())),
        # Only takes of some families have these.
        decoding=DecodingTrace.from_json(data["decoding"]) if "decoding" in data else None,
        demasking=DemaskingTrace.from_json(data["demasking"]) if "demasking" in data else None,
    )


_SAMPLE = np.dtype(np.float32)
_NONE = np.zeros(0, _SAMPLE)


# --- Deleted takes ----------------------------------------------------------------------------------------------------
# Undo of deletion: deleted audio is kept in an unnamed file in the library's folder. Thousands of takes need hardly any
# memory, and the system frees the disk when no undo needs them, or when the application closes or is killed.


class KeptAudio:
    """Audio in one unnamed file in ``folder``, kept while any owner object exists. One file serves all, as systems
    limit open files; there is none while nothing is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._held = 0

    def hold(self, owner: object) -> None:
        """Keep everything written from now on until ``owner`` is gone."""
        self._held += 1
        weakref.finalize(owner, self._release)

    def write(self, samples: np.ndarray) -> int:
        """Append ``samples``, (n,), as float32; returns their first byte. Raises :class:`OSError`."""
        if self._file is None:
            # On the library's disk: the usual temporary folder is in memory on many machines.
            self._file = tempfile.TemporaryFile(prefix=files.TEMPORARY, dir=self._folder)  # noqa: SIM115
        begin = self._file.seek(0, os.SEEK_END)
        self._file.write(samples.astype(_SAMPLE).tobytes())
        self._file.flush()
        return begin

    def read(self, begin: int, frames: int) -> np.ndarray:
        """Read ``frames`` samples from the byte ``begin``, (frames,) float32. Raises :class:`OSError`."""
        assert self._file is not None, "what is held was written"
        self._file.seek(begin)
        return np.frombuffer(self._file.read(frames * _SAMPLE.itemsize), _SAMPLE)

    def _release(self) -> None:
        self._held -= 1
        if not self._held and self._file is not None:
            self._file.close()
            self._file = None


class DeletedTakes:
    """Takes deleted together. Everything but the audio stays in memory."""

    def __init__(self, kept: KeptAudio) -> None:
        self._kept = kept
        self._takes: dict[str, tuple[Take, int, int]] = {}
        """Takes without audio, with the audio's first byte and number of samples."""
        kept.hold(self)

    def __iter__(self) -> Iterator[str]:
        """Their ids, in the order of deletion."""
        return iter(self._takes)

    def __len__(self) -> int:
        return len(self._takes)

    def delete(self, take: Take, library: Library) -> None:
        """Delete ``take``, loaded by ``library``. It stays there if this raises :class:`LibraryError`."""
        problem = f"The take {take.id} was not deleted, since its audio could not be kept for Undo"
        with files.explained(LibraryError, problem):
            begin = self._kept.write(take.samples)
        library.delete(take.id)
        self._takes[take.id] = replace(take, samples=_NONE), begin, len(take.samples)

    def delete_again(self, library: Library) -> None:
        """Delete the restored takes again. Raises :class:`LibraryError`."""
        for one in self._takes:
            if one in library:
                library.delete(one)

    def restore(self, library: Library) -> None:
        """Restore takes missing in ``library``, another one if it was damaged. Raises :class:`LibraryError`."""
        for name, (take, begin, frames) in self._takes.items():
            if name in library:
                continue
            with files.explained(LibraryError, "The audio of a deleted take could not be read"):
                samples = self._kept.read(begin, frames)
            library.add(replace(take, samples=samples))
