"""Putting files into a folder so that all of them arrive or none, and nothing that is there is lost. Torch-free."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from engine import files
from engine.errors import PlainError

PIECE_BYTES = 2**24
"""Bytes written between two checks for cancelling."""


def deliver(folder: Path, contents: Mapping[str, bytes], progress: Callable[[int, int], None]) -> tuple[Path, ...]:
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
        _write(folder, wanted, progress)
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


def _is_there(path: Path, content: bytes) -> bool:
    """Whether ``path`` has this content already. Raises :class:`PlainError` if it is anything else."""
    if not os.path.lexists(path):
        return False
    try:
        same = path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError as error:
        raise PlainError(f"{path} is in the way and cannot be read; choose another folder.") from error
    if not same:
        raise PlainError(f"{path} exists with other content and is kept; choose another folder, or move the file.")
    return True


def _write(folder: Path, contents: Mapping[str, bytes], progress: Callable[[int, int], None]) -> None:
    place, arrived, total = None, [], sum(map(len, contents.values()))
    path, done = folder, 0
    try:
        # Within the folder, because a file can be renamed only within its file system.
        files.clear_abandoned(folder)
        place = Path(tempfile.mkdtemp(prefix=files.TEMPORARY, dir=folder))
        for name, content in contents.items():
            path = folder / name
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            with open(place / name, "wb") as file:
                for start in range(0, len(content), PIECE_BYTES):
                    done += file.write(memoryview(content)[start : start + PIECE_BYTES])
                    progress(done, total)
                file.flush()
                os.fsync(file.fileno())
        for name, content in contents.items():
            path = folder / name
            if not _is_there(path, content):
                os.rename(place / name, path)
                arrived.append(path)
    except BaseException as error:
        for one in arrived:
            with contextlib.suppress(OSError):
                one.unlink()
        if isinstance(error, OSError):
            raise PlainError(f"{path} could not be written: {files.reason(error)}.") from error
        raise
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
