"""Standard streams, and places to write to."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paretone import files
from paretone.errors import PlainError
from paretone.reading import printable


def prepare() -> None:
    """Make this process's standard streams safe to use.

    What cannot be written to standard error, since that is closed or its disk is full, is dropped: a job does not end
    because nobody sees its progress. Raises :class:`PlainError` if standard output is closed, before any work whose
    result would be lost.
    """
    global _left_to_content
    _left_to_content = False
    closed = sys.stdout is None
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _fill_closed()
        sys.stdin, sys.stdout = sys.stdin or os.fdopen(0), sys.stdout or os.fdopen(1, "w")
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        encoding = getattr(sys.stderr, "encoding", "utf-8")
        lost: Any = _MayBeLost()
        sys.stderr = Errors(lost, encoding, errors="backslashreplace", write_through=True)
    if closed:
        raise PlainError("Standard output is closed, so the result would be lost; send it to a file or /dev/null.")


def _fill_closed() -> None:
    """Put the null device where a standard stream is closed. A file that is opened later would get its number, and
    messages of libraries would be written into it."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)


class Errors(io.TextIOWrapper):
    """Standard error without control characters, in logging and tracebacks too."""

    def write(self, text: str) -> int:
        return super().write(printable(text))

    def controls(self, text: str) -> int:
        """Write ``text`` as it is: control characters of our own."""
        return super().write(text)


class _MayBeLost(io.RawIOBase):
    """Standard error of the process."""

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


def leave_to_content() -> None:
    """From now on, :func:`show` prints on standard error: a file is written to standard output."""
    global _left_to_content
    _left_to_content = True


def show(text: str) -> None:
    """Print ``text`` on standard output. Raises :class:`PlainError` where it cannot be written, and
    :class:`BrokenPipeError` where the reader has stopped."""
    text = printable(text)
    if _left_to_content:
        print(text, file=sys.stderr)
        return
    # A Windows pipe may know fewer letters than people write.
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "replace").decode(encoding), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon()
        raise PlainError(f"The result could not be written to standard output: {files.reason(error)}.") from error


def abandon() -> None:
    """Drop what standard output still holds: Python would complain once more when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_STANDARD_OUTPUT = frozenset({"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})


def writable(name: str | Path) -> Path:
    """``name`` as a path that can be written, known before the work and not after it; ``-`` is standard output, and
    what a command says goes to standard error then."""
    path = _named(name, "file")
    if str(name) in _STANDARD_OUTPUT:
        leave_to_content()
        return files.STANDARD_OUTPUT
    # Without permission, these functions return False, and Path's raise.
    if os.path.isdir(path):
        raise PlainError(f"{path} is a folder; give the name of a file.")
    try:
        if files.flows(path):
            if not os.access(path, os.W_OK):
                raise PlainError(f"{path} cannot be written: you may not write there; choose another name.")
            return path
    except OSError as error:
        raise PlainError(f"{path} cannot be written: {files.reason_at(path, error)}.") from error
    if not os.path.isdir(path.parent):
        raise PlainError(f"The folder {path.parent} does not exist; create it or choose another.")
    _require_permission(files.target(path).parent, f"{path} cannot be written", path)
    return path


def writable_sound(name: str | Path) -> Path:
    """The same for sound, in a format of which the ending of ``name`` is."""
    from paretone.audio.recording import require_kind

    path = writable(name)
    if path is files.STANDARD_OUTPUT and sys.stdout.isatty():
        raise PlainError("Standard output is a terminal, which cannot play sound; send it to a program or a file.")
    require_kind(path)
    return path


def apart(outputs: Mapping[str, str | Path | None], inputs: Mapping[str, str | Path | None] = {}) -> None:
    """Raise :class:`PlainError` if two of the files that a command writes are one, or one of them is a file that it
    reads: by the options that name them, ``None`` for one that is not given."""
    seen: dict[str, str] = {}
    for option, path in (*inputs.items(), *outputs.items()):
        if not path or (str(path) == "-" and option not in outputs):
            continue
        place = os.path.normcase(os.path.realpath(path))
        if _is_device(place):
            continue
        if place in seen and (option in outputs):
            raise PlainError(f"{seen[place]} and {option} name the same file, {path}; give each its own.")
        seen.setdefault(place, option)


def place_for_folder(name: str | Path) -> Path:
    """``name`` as the path of a folder that is there or can be made, known before the work and not after it."""
    path = _named(name, "folder")
    # As above.
    if file := next((one for one in (path, *path.parents) if os.path.exists(one) and not os.path.isdir(one)), None):
        raise PlainError(f"{file} is a file; give the name of a folder.")
    return path


def folder(name: str | Path) -> Path:
    """The folder ``name``, made if it is missing, that files can be put into."""
    path = place_for_folder(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlainError(f"The folder {path} could not be created: {files.reason_at(path, error)}.") from error
    _require_permission(path, f"Cannot write to the folder {path}", path / "file")
    return path


def write_json(path: Path, data: object) -> None:
    """Write JSON values, whole or not at all."""
    files.write(path, (json.dumps(data) + "\n").encode())


def _is_device(path: str) -> bool:
    """Whether this can be written twice, as the null device."""
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)
    except OSError:
        return False


def _named(name: str | Path, what: str) -> Path:
    if not str(name).strip():
        raise PlainError(f"The name of a {what} to write is empty; give one.")
    return Path(name)


def _require_permission(folder: Path, problem: str, path: Path) -> None:
    """Raise :class:`PlainError` that begins with ``problem`` if ``path`` cannot be made in ``folder``."""
    try:
        # Permissions alone are not enough: disks that can only be read, and shared ones, have their own rules.
        with tempfile.TemporaryFile(prefix=files.TEMPORARY, dir=folder):
            pass
    except OSError as error:
        raise PlainError(f"{problem}: {files.reason_at(path, error)}.") from error
