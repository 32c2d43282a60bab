"""Atomic file writing, safe against crashes and full disks. Torch-free."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from paretone.errors import PlainError
from paretone.reading import until_changed
from paretone.wording import grouped

TEMPORARY = ".part-"
ABANDONED_SECONDS = 3600.0
"""Age from which an unchanged temporary file or folder counts as left by a killed process."""
_MOST_CLEARED = 1000
"""Maximum number of folders remembered as cleared."""
STANDARD_OUTPUT = Path("standard output")
"""Compared by identity: :func:`write` sends content for this object to this process's standard output."""
_WIDTH = 4
"""Bytes per sample."""
PATIENCE_SECONDS = 3.0
"""How long a window, which cannot wait, waits for a stalled reader."""
_GLANCE_SECONDS = 0.1
"""Polling interval of a pipe without a reader."""


def require_room(kind: type[PlainError], place: Path, needed: float, what: str) -> None:
    """Raise ``kind`` unless the folder ``place`` has room for the ``needed`` bytes of ``what``."""
    if (free := shutil.disk_usage(place).free) < needed:
        raise kind(
            f"{place} has {grouped(free / 1e6, 1)} MB of free space, but {what} takes {grouped(needed / 1e6, 1)} MB or "
            "more; free some or choose another folder."
        )


def write_atomically(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file to write, which is put at ``path`` atomically after the block, with the permissions ``mode``, if given.
    Readers, also after a crash, find the old file or the new one. Raises :class:`OSError`, and what the block raises,
    without any change or left file. Files left by a process killed while writing are removed by a later one:
    :func:`clear_abandoned`."""
    clear_abandoned(path.parent)
    # In the same folder, because renaming works only within a file system.
    handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _permissions(path) if mode is None else mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def clear_abandoned(folder: Path) -> None:
    """Remove temporary files and folders left by killed processes in ``folder``, unchanged for
    :data:`ABANDONED_SECONDS`. Runs once per process, as large folders take a while."""
    if folder in _cleared:
        return
    if len(_cleared) >= _MOST_CLEARED:
        _cleared.clear()
    _cleared.add(folder)
    before = time.time() - ABANDONED_SECONDS
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for one in entries:
            if one.name.startswith(TEMPORARY) and _last_change(one) < before:
                if one.is_dir(follow_symlinks=False):
                    shutil.rmtree(one.path, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        os.unlink(one.path)


_cleared: set[Path] = set()


def _last_change(entry: os.DirEntry[str]) -> float:
    """Time of the last change, for a link of the link itself; the present time if unknown."""
    try:
        latest = entry.stat(follow_symlinks=False).st_mtime
        if entry.is_dir(follow_symlinks=False):
            inside = (
                Path(place) / name for place, folders, names in os.walk(entry.path) for name in (*folders, *names)
            )
            latest = max([latest, *(one.lstat().st_mtime for one in inside)])
    except OSError:
        return time.time()
    return latest


def write(path: Path, content: bytes) -> None:
    """Write a file named by the user: see :func:`write_through`. Raises :class:`PlainError` with the reason."""
    with explained(PlainError, f"{path} could not be written", path):
        write_through(path, content)


def write_through(path: Path, content: bytes) -> None:
    """Write a file named by the user. A symbolic link stays, and its target is written atomically; pipes and devices
    are written into. Raises :class:`OSError`, also for anything else that is not a regular file. Inside our own
    folders, studies and the library, use :func:`write_atomically`: nothing is written through links."""
    if path is STANDARD_OUTPUT:
        _pour(sys.stdout.fileno(), content, path)
    elif flows(path):
        handle = _opened_to_pour(path)
        try:
            _pour(handle, content, path)
        finally:
            os.close(handle)
    else:
        write_atomically(target(path), content)


def target(path: Path) -> Path:
    """Final target of a symbolic link ``path``; otherwise ``path`` itself."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else path  # A name may be too long to ask pathlib.


def flows(path: Path) -> bool:
    """Whether ``path`` is a pipe or a device, which is written into rather than replaced. Raises :class:`OSError` for a
    folder, a socket, or a disk, which cannot be written as a file."""
    if path is STANDARD_OUTPUT:
        return True
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    except ValueError:  # A NUL in the name.
        raise OSError("no file can have such a name") from None
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return True
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a socket" if stat.S_ISSOCK(mode) else "a disk"
        raise OSError(f"it is {kind}; choose a file's name")
    return False


@contextlib.contextmanager
def waiting_for_readers(wait: Callable[[str], None]) -> Iterator[None]:
    """Let writing to a pipe wait for its reader, for commands; windows cannot wait. Meanwhile ``wait`` is called
    repeatedly with a sentence; it may raise."""
    global _wait
    before, _wait = _wait, wait
    try:
        yield
    finally:
        _wait = before


_wait: Callable[[str], None] | None = None


def _opened_to_pour(path: Path) -> int:
    """Open a pipe or device without blocking in the system, where Ctrl-C could not end it."""
    flags = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    while True:
        try:
            handle = os.open(path, flags)
            break
        except OSError as error:
            if error.errno != errno.ENXIO or not stat.S_ISFIFO(os.stat(path).st_mode):
                raise
            if _wait is None:
                raise OSError("nobody reads from this pipe; start its reader first") from None
            _wait(f"Waiting for a reader of {path}")
            time.sleep(_GLANCE_SECONDS)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("it has just been replaced; try again")
    return handle


def _pour(handle: int, content: bytes, path: Path) -> None:
    rest = memoryview(content)
    last = time.monotonic()
    while rest:
        if os.name != "nt" and not select.select([], [handle], [], _GLANCE_SECONDS)[1]:
            if _wait is not None:
                _wait(f"Waiting for the reader of {path}")
            elif time.monotonic() > last + PATIENCE_SECONDS:
                raise OSError("its reader does not read on")
            continue
        last = time.monotonic()
        # No more than a pipe takes at once: a pausing reader must not block us in the system.
        with contextlib.suppress(BlockingIOError):
            rest = rest[os.write(handle, rest[: select.PIPE_BUF if os.name != "nt" else len(rest)]) :]


def append_line(path: Path, line: str) -> None:
    """Append ``line`` and a line end to the file ``path``, created if missing: completely or, if this raises
    :class:`OSError`, not at all. A line truncated by a crash stays separate."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
    try:
        content = line.encode() + b"\n"
        length = os.fstat(handle).st_size
        if length:
            os.lseek(handle, -1, os.SEEK_END)
            content = content if os.read(handle, 1) == b"\n" else b"\n" + content
        try:
            written = 0
            while written < len(content):
                written += os.write(handle, content[written:])
            os.fsync(handle)
        except BaseException:
            os.ftruncate(handle, length)
            raise
    finally:
        os.close(handle)


def write_wav(path: Path, samples: np.ndarray, sample_rate: int) -> None:
    """Write mono float32 ``samples``, (n,), at ``sample_rate`` hertz: see :func:`wav`. Raises :class:`PlainError`."""
    write(path, wav(samples, sample_rate))


def wav(samples: np.ndarray, sample_rate: int) -> bytes:
    """Mono WAV file of 32-bit floats: exactly the given float32 ``samples``, (n,), and equal files for equal samples.
    Written by hand because libsndfile puts the time into such files, in a PEAK chunk. Source: Microsoft, "Multiple
    Channel Audio Data and WAVE Files": formats other than PCM have an extension size and a fact chunk."""
    return _wav_head(len(samples), sample_rate) + np.ascontiguousarray(samples, dtype="<f4").tobytes()


@until_changed(65_536)  # Followers of a study check all its files after each take.
def is_wav(path: Path, frames: int, sample_rate: int) -> bool:
    """Whether ``path`` is a file of ``frames`` samples written by :func:`wav`, by header and size alone."""
    try:
        head = _wav_head(frames, sample_rate)
        with path.open("rb") as file:
            return file.read(len(head)) == head and path.stat().st_size == len(head) + frames * _WIDTH
    except (OSError, struct.error):
        return False


def _wav_head(frames: int, sample_rate: int) -> bytes:
    ieee_float, channels, size = 3, 1, frames * _WIDTH
    form = struct.pack("<HHIIHHH", ieee_float, channels, sample_rate, sample_rate * _WIDTH, _WIDTH, 8 * _WIDTH, 0)
    chunks = b"".join(
        name + struct.pack("<I", len(content)) + content
        for name, content in ((b"fmt ", form), (b"fact", struct.pack("<I", frames)))
    )
    chunks += b"data" + struct.pack("<I", size)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks) + size) + b"WAVE" + chunks


@contextlib.contextmanager
def explained(kind: type[PlainError], what: str, at: Path | None = None) -> Iterator[None]:
    """Raise ``kind`` in place of an :class:`OSError`: ``what`` went wrong, and why; ``at``: the path, which may be a
    link."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {reason(error) if at is None else reason_at(at, error)}.") from error


def reason(error: OSError) -> str:
    """Reason why a file could not be written, as the end of a sentence."""
    if error.errno is None and str(error):
        return str(error)
    if error.errno == errno.EINVAL and error.strerror and error.strerror != os.strerror(errno.EINVAL):
        return error.strerror  # A sentence of ours: paretone.reading.require_regular.
    reasons = {
        errno.ENOSPC: "the disk is full; free some space",
        errno.EDQUOT: "your share of the disk is used up; free some space",
        errno.EFBIG: "the file would be larger than is allowed here",
        errno.EACCES: "you may not write there; choose another folder",
        errno.EPERM: "you may not write there; choose another folder",
        errno.EROFS: "that disk can only be read; choose another folder",
        errno.ENOENT: "its folder does not exist; create it or choose another",
        errno.ENOTDIR: "its folder is a file; choose another",
        errno.EEXIST: "a file has that name; choose another",
        errno.EISDIR: "it is a folder; choose a file's name",
        errno.EPIPE: "its reader has stopped",
        errno.ELOOP: "it is a symbolic link that leads back to itself; delete it or choose another name",
    }
    return reasons.get(error.errno or 0, f"the system says: {error.strerror or error}")


def reason_at(path: Path, error: OSError) -> str:
    """Reason why ``path`` could not be written, as the end of a sentence. Names the target of a symbolic link, and a
    folder that exists but accepts no files, such as /proc."""
    place = target(path)
    said = reason(error)
    if error.errno == errno.ENOENT and os.path.isdir(place.parent):
        said = f"nothing can be made in the folder {place.parent}; choose another"
    # A circle of links has no target to name.
    return said if place == path or error.errno == errno.ELOOP else f"it is a link to {place}: {said}"


def _permissions(path: Path) -> int:
    """Permissions of the replaced file, or of a new file by the user's mask."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Make a renaming durable. Windows does so by itself and cannot open folders."""
    if os.name == "nt":
        return
    # The file is in place, so a file system without this is not a failure.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
