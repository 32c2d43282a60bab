"""Delivery of files into a folder: all of them or none, without overwriting existing files. Torch-free."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from paretone import files
from paretone.errors import PlainError

PIECE_BYTES = 2**24
"""Bytes written, copied or compared between two checks for cancellation."""


@dataclass(frozen=True)
class Copied:
    """File copied from ``source`` piece by piece: checkpoints are never wholly in memory."""

    source: Path


@dataclass(frozen=True)
class Made:
    """File written by ``write(path, wrote)``, which often calls ``wrote(bytes written since)``; that may cancel."""

    write: Callable[[Path, Callable[[int], None]], None]
    size: int
    """Expected size (bytes), for the progress."""


Content = bytes | Copied | Made


def deliver(folder: Path, contents: Mapping[str, Content], progress: Callable[[int, int], None]) -> tuple[Path, ...]:
    """Write ``contents``, by file name, into ``folder``, made if missing; return the files. Names may contain ``/``.

    An existing file with the same content stays as it is. ``progress`` is called after every piece with the bytes
    written and the total, and may raise to cancel: then, as after any failure, the folder is restored. Raises
    :class:`PlainError` if a file with other content exists, or writing fails.
    """
    made: list[Path] = []
    try:
        for place in dict.fromkeys((folder, *((folder / name).parent for name in contents))):
            missing = [one for one in (place, *place.parents) if not one.exists()]  # Innermost first.
            with files.explained(PlainError, f"The folder {place} could not be made", place):
                place.mkdir(parents=True, exist_ok=True)
            made = [*missing, *made]
        wanted = {name: content for name, content in contents.items() if not _is_there(folder / name, content)}
        _Delivery(folder, wanted, progress).write()
    except BaseException:
        for one in made:
            # Keep the folder if others have put files there meanwhile.
            with contextlib.suppress(OSError):
                one.rmdir()
        raise
    return tuple(folder / name for name in contents)


def _is_there(path: Path, content: Content) -> bool:
    """Whether ``path`` has this content already. Raises :class:`PlainError` if it has another. A :class:`Made` file is
    compared after writing."""
    if not os.path.lexists(path):
        return False
    if isinstance(content, Made) and path.is_file():
        return False
    try:
        same = path.is_file() and not isinstance(content, Made) and _equal(path, content)
    except OSError as error:
        raise PlainError(f"{path} is in the way and cannot be read; choose another folder.") from error
    if not same:
        raise PlainError(f"{path} exists with other content and is kept; choose another folder, or move the file.")
    return True


def _equal(path: Path, content: bytes | Copied) -> bool:
    if isinstance(content, bytes):
        return path.stat().st_size == len(content) and path.read_bytes() == content
    if path.stat().st_size != _size(content):
        return False
    with path.open("rb") as one, _opened(content.source) as two:
        while piece := one.read(PIECE_BYTES):
            if piece != two.read(len(piece)):
                return False
    return True


def _size(content: Content) -> int:
    if isinstance(content, bytes):
        return len(content)
    if isinstance(content, Made):
        return content.size
    try:
        return content.source.stat().st_size
    except OSError as error:
        raise _unreadable(content.source, error) from error


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    """Open a file to copy. Raises :class:`PlainError` if it cannot be read."""
    try:
        file = source.open("rb")
    except OSError as error:
        raise _unreadable(source, error) from error
    with file:
        yield file


def _unreadable(source: Path, error: OSError) -> PlainError:
    return PlainError(f"{source} cannot be read ({files.reason(error)}); restore the file.")


class _Delivery:
    def __init__(self, folder: Path, contents: Mapping[str, Content], progress: Callable[[int, int], None]) -> None:
        self._folder, self._contents, self._progress = folder, contents, progress
        self._total = sum(map(_size, contents.values()))
        self._done = 0
        self._path = folder
        """Current file, for messages."""

    def write(self) -> None:
        """Write all files or none."""
        place, arrived = None, []
        try:
            # In the folder itself, since renaming works only within a file system.
            files.clear_abandoned(self._folder)
            place = Path(tempfile.mkdtemp(prefix=files.TEMPORARY, dir=self._folder))
            for name, content in self._contents.items():
                self._path = self._folder / name
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                self._write_one(place / name, content)
            for name, content in self._contents.items():
                self._path = self._folder / name
                written: Content = Copied(place / name) if isinstance(content, Made) else content
                if not _is_there(self._path, written):
                    os.rename(place / name, self._path)
                    arrived.append(self._path)
        except BaseException as error:
            for one in arrived:
                with contextlib.suppress(OSError):
                    one.unlink()
            if isinstance(error, OSError):
                raise PlainError(f"{self._path} could not be written: {files.reason(error)}.") from error
            raise
        finally:
            if place is not None:
                shutil.rmtree(place, ignore_errors=True)

    def _write_one(self, path: Path, content: Content) -> None:
        if isinstance(content, Made):
            until = self._done + content.size
            content.write(path, lambda wrote: self._wrote(min(wrote, until - self._done)))
            self._wrote(until - self._done)
            with path.open("rb+") as file:
                os.fsync(file.fileno())
            return
        with open(path, "wb") as file:
            for piece in _pieces(content):
                self._wrote(file.write(piece))
            file.flush()
            os.fsync(file.fileno())

    def _wrote(self, count: int) -> None:
        self._done += count
        self._progress(self._done, self._total)


def _pieces(content: bytes | Copied) -> Iterator[bytes | memoryview]:
    if isinstance(content, bytes):
        for start in range(0, len(content), PIECE_BYTES):
            yield memoryview(content)[start : start + PIECE_BYTES]
        return
    with _opened(content.source) as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
