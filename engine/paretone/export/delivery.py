"""Putting files into a folder so that all of them arrive or none, and nothing that is there is lost. Torch-free."""

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
"""Bytes written, copied or compared between two checks for cancelling."""


@dataclass(frozen=True)
class Copied:
    """A file that is copied from ``source`` piece by piece: checkpoints are never in memory whole."""

    source: Path


@dataclass(frozen=True)
class Made:
    """A file that ``write(path, wrote)`` makes at ``path``; it calls ``wrote(bytes)`` now and then with what was
    written since, which may raise to cancel."""

    write: Callable[[Path, Callable[[int], None]], None]
    size: int
    """Bytes to be expected, for the progress."""


Content = bytes | Copied | Made
"""The content of a file that is delivered."""


def deliver(folder: Path, contents: Mapping[str, Content], progress: Callable[[int, int], None]) -> tuple[Path, ...]:
    """Write ``contents``, by file names, into ``folder``, which is made if it is missing; the files. Names may have
    folders in them, with ``/``.

    A file that is there with the same content stays as it is. ``progress`` gets the bytes written and their number
    after every piece, and may raise to cancel: then, as after any failure, the folder is as it was. Raises
    :class:`PlainError` if a file of other content is in the way, or nothing can be written.
    """
    made: list[Path] = []
    try:
        for place in dict.fromkeys((folder, *((folder / name).parent for name in contents))):
            made = [*_make(place), *made]
        wanted = {name: content for name, content in contents.items() if not _is_there(folder / name, content)}
        _Delivery(folder, wanted, progress).write()
    except BaseException:
        for one in made:
            # The folder stays if others have put files there meanwhile.
            with contextlib.suppress(OSError):
                one.rmdir()
        raise
    return tuple(folder / name for name in contents)


def _make(folder: Path) -> list[Path]:
    """Make ``folder`` and what it lies in; what was made, the innermost first."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlainError(f"The folder {folder} could not be made: {files.reason(error)}.") from error
    return missing


def _is_there(path: Path, content: Content) -> bool:
    """Whether ``path`` has this content already. Raises :class:`PlainError` if it is anything else; what is yet to be
    made is compared once it is."""
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
    """A file to copy. Raises :class:`PlainError` if it cannot be read."""
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
        self._folder = folder
        self._contents = contents
        self._progress = progress
        self._total = sum(map(_size, contents.values()))
        self._done = 0
        self._path = folder
        """The file at hand, for messages."""

    def write(self) -> None:
        """All of them or none."""
        place, arrived = None, []
        try:
            # Within the folder, because a file can be renamed only within its file system.
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
