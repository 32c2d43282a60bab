"""Standard streams, and output paths."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from paretone import files
from paretone.errors import PlainError
from paretone.reading import printable


def prepare() -> None:
    """Make this process's standard streams safe to use. Output to a closed or full standard error is dropped: a job
    does not fail because its progress is invisible. Raises :class:`PlainError` if standard output is closed, before
    work whose result would be lost."""
    global _left_to_content
    _left_to_content = False
    closed = sys.stdout is None
    if None in (sys.stdin, sys.stdout, sys.stderr):
        # A file opened later would otherwise get a closed stream's number, and libraries would write messages into it.
        while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(handle)
        sys.stdin, sys.stdout = sys.stdin or os.fdopen(0), sys.stdout or os.fdopen(1, "w")
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        encoding = getattr(sys.stderr, "encoding", "utf-8")
        lost: Any = _MayBeLost()
        sys.stderr = Errors(lost, encoding, errors="backslashreplace", write_through=True)
    if closed:
        raise PlainError("Standard output is closed, so the result would be lost; send it to a file or /dev/null.")


class Errors(io.TextIOWrapper):
    """Standard error without control characters, also in logging and tracebacks."""

    def write(self, text: str) -> int:
        return super().write(printable(text))

    def controls(self, text: str) -> int:
        """Write ``text`` with our own control characters."""
        return super().write(text)


class _MayBeLost(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(2)

    def fileno(self) -> int:
        return 2

    def write(self, content: object) -> int:
        data = bytes(content)  # type: ignore[call-overload]
        try:
            return os.write(2, data)
        except OSError:
            return len(data)


_left_to_content = False
"""Whether standard output receives a file, so that :func:`show` prints to standard error."""


def show(text: str) -> None:
    """Print ``text`` on standard output. Raises :class:`PlainError` if writing fails, and :class:`BrokenPipeError` if
    the reader has stopped."""
    text = printable(text)
    if _left_to_content:
        print(text, file=sys.stderr)
        return
    # A Windows pipe may not encode all characters.
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "replace").decode(encoding), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        closed = error.errno == errno.EIO and stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)
        abandon()
        if closed:  # The terminal is gone, so nobody can read the rest.
            raise BrokenPipeError from error
        raise PlainError(f"The result could not be written to standard output: {files.reason(error)}.") from error


def abandon() -> None:
    """Discard standard output's buffer: Python would otherwise complain again on closing the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_STANDARD_OUTPUT = frozenset({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})


def writable(name: str | Path) -> Path:
    """``name`` as a writable path, checked before the work; ``-``: standard output, with messages on standard error."""
    global _left_to_content
    path = _named(name, "file")
    if str(name) in _STANDARD_OUTPUT:
        _left_to_content = True
        return files.STANDARD_OUTPUT
    # Without permission, these functions return False; Path's raise.
    if os.path.isdir(path):
        raise PlainError(f"{path} is a folder; give the name of a file.")
    with files.explained(PlainError, f"{path} cannot be written", path):
        if files.flows(path):
            if not os.access(path, os.W_OK):
                raise PlainError(f"{path} cannot be written: you may not write there; choose another name.")
            return path
    if not os.path.isdir(path.parent):
        raise PlainError(f"The folder {path.parent} does not exist; create it or choose another.")
    _require_permission(files.target(path).parent, f"{path} cannot be written", path)
    return path


def writable_sound(name: str | Path) -> Path:
    """Like :func:`writable` for sound, in the format of the file's suffix."""
    from paretone.audio.recording import require_kind

    path = writable(name)
    if path is files.STANDARD_OUTPUT and sys.stdout.isatty():
        raise PlainError("Standard output is a terminal, which cannot play sound; send it to a program or a file.")
    require_kind(path)
    return path


def apart(outputs: Mapping[str, str | Path | None], inputs: Mapping[str, str | Path | None] = {}) -> None:
    """Raise :class:`PlainError` if an output is also another one, or an input; paths (or ``None``) by option."""
    seen: dict[str, str] = {}
    for option, path in (*inputs.items(), *outputs.items()):
        if not path or (str(path) == "-" and option not in outputs):
            continue
        place = os.path.normcase(os.path.realpath(path))
        with suppress(OSError):
            if stat.S_ISCHR(os.stat(place).st_mode):  # A device such as the null device can be written twice.
                continue
        if place in seen and (option in outputs):
            raise PlainError(f"{seen[place]} and {option} name the same file, {path}; give each its own.")
        seen.setdefault(place, option)


def place_for_folder(name: str | Path) -> Path:
    """``name`` as the path of an existing or creatable folder, checked before the work."""
    path = _named(name, "folder")
    # As above.
    if file := next((one for one in (path, *path.parents) if os.path.exists(one) and not os.path.isdir(one)), None):
        raise PlainError(f"{file} is a file; give the name of a folder.")
    return path


def folder(name: str | Path) -> Path:
    """The folder ``name``, created if missing and checked for writing."""
    path = place_for_folder(name)
    with files.explained(PlainError, f"The folder {path} could not be created", path):
        path.mkdir(parents=True, exist_ok=True)
    _require_permission(path, f"Cannot write to the folder {path}", path / "file")
    return path


def write_json(path: Path, data: object) -> None:
    files.write(path, (json.dumps(data) + "\n").encode())


def _named(name: str | Path, what: str) -> Path:
    if not str(name).strip():
        raise PlainError(f"The name of a {what} to write is empty; give one.")
    return Path(str(name))


def _require_permission(folder: Path, problem: str, path: Path) -> None:
    """Raise :class:`PlainError` that begins with ``problem`` if ``path`` cannot be created in ``folder``."""
    # Permissions do not suffice: read-only and shared disks have their own rules.
    with files.explained(PlainError, problem, path), tempfile.TemporaryFile(prefix=files.TEMPORARY, dir=folder):
        pass
