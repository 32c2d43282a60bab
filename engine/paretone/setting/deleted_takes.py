"""Deleted takes that can come back. Torch-free.

Their audio waits in a file without a name in the library's folder. Thousands of takes need no memory to speak of, and
the system frees the disk when nobody can bring any of them back any more, the application is closed, or it was killed.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from paretone import files
from paretone.errors import LibraryError
from paretone.setting.library import Library
from paretone.setting.take import Take

_SAMPLE = np.dtype(np.float32)
_NONE = np.zeros(0, _SAMPLE)


class KeptAudio:
    """Sound in one file without a name in ``folder``, as long as somebody holds the object that it was kept for. There
    is one file for all, since systems limit how many a program may have open, and none while nothing is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._held = 0

    def hold(self, owner: object) -> None:
        """Keep what is written from now on until ``owner`` is gone."""
        self._held += 1
        weakref.finalize(owner, self._release)

    def write(self, samples: np.ndarray) -> int:
        """Add ``samples``, (n,), as float32; the byte where they begin. Raises :class:`OSError`."""
        if self._file is None:
            # On the disk of the library: the usual folder for temporary files is in memory on many machines.
            self._file = tempfile.TemporaryFile(prefix=files.TEMPORARY, dir=self._folder)  # noqa: SIM115
        begin = self._file.seek(0, os.SEEK_END)
        self._file.write(samples.astype(_SAMPLE).tobytes())
        self._file.flush()
        return begin

    def read(self, begin: int, frames: int) -> np.ndarray:
        """What was written there, (frames,) float32. Raises :class:`OSError`."""
        assert self._file is not None, "what is held was written"
        self._file.seek(begin)
        return np.frombuffer(self._file.read(frames * _SAMPLE.itemsize), _SAMPLE)

    def _release(self) -> None:
        self._held -= 1
        if not self._held and self._file is not None:
            self._file.close()
            self._file = None


class DeletedTakes:
    """Takes that were deleted together. All but the audio stays in memory."""

    def __init__(self, kept: KeptAudio) -> None:
        self._kept = kept
        self._takes: dict[str, tuple[Take, int, int]] = {}
        """Each without its audio, which begins at the byte and has the number of samples."""
        kept.hold(self)

    def __iter__(self) -> Iterator[str]:
        """Their ids, in the order of deletion."""
        return iter(self._takes)

    def __len__(self) -> int:
        return len(self._takes)

    def delete(self, take: Take, library: Library) -> None:
        """Delete ``take``, which ``library`` has loaded. It stays there if this raises :class:`LibraryError`, as on a
        disk that has no room for a copy."""
        try:
            begin = self._kept.write(take.samples)
        except OSError as error:
            raise LibraryError(
                f"The take {take.id} was not deleted, since its audio could not be kept for Undo: "
                f"{files.reason(error)}."
            ) from error
        library.delete(take.id)
        self._takes[take.id] = replace(take, samples=_NONE), begin, len(take.samples)

    def delete_again(self, library: Library) -> None:
        """Delete those that were restored. Raises :class:`LibraryError`."""
        for one in self._takes:
            if one in library:
                library.delete(one)

    def restore(self, library: Library) -> None:
        """Put those that are not in ``library`` back, as they were; another one than they were deleted from, if that
        was damaged. Raises :class:`LibraryError`."""
        for name, (take, begin, frames) in self._takes.items():
            if name in library:
                continue
            try:
                samples = self._kept.read(begin, frames)
            except OSError as error:
                raise LibraryError(f"The audio of a deleted take could not be read: {files.reason(error)}.") from error
            library.add(replace(take, samples=samples))
