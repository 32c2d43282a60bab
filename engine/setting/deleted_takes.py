"""Deleted takes that can come back. Torch-free.

Their audio waits in a file without a name in the library's folder. Thousands of takes need no memory to speak of, and
the system frees the disk when nobody can bring them back any more: the object is gone, the application is closed, or it
was killed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from engine import files
from engine.errors import LibraryError
from engine.setting.library import Library
from engine.setting.take import Take

_SAMPLE = np.dtype(np.float32)
_NONE = np.zeros(0, _SAMPLE)


class DeletedTakes:
    """Takes of ``library`` that were deleted together. All but the audio stays in memory."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._takes: dict[str, tuple[Take, int, int]] = {}
        """Each without its audio, which begins at the byte and has the number of samples."""
        self._file: BinaryIO | None = None

    def __iter__(self) -> Iterator[str]:
        """Their ids, in the order of deletion."""
        return iter(self._takes)

    def __len__(self) -> int:
        return len(self._takes)

    def delete(self, take: Take) -> None:
        """Delete ``take``, which :meth:`Library.load` gave. It stays in the library if this raises
        :class:`LibraryError`, as on a disk that has no room for a copy."""
        try:
            begin = self._keep(take.samples)
        except OSError as error:
            raise LibraryError(
                f"The take {take.id} was not deleted, since its audio could not be kept for Undo: "
                f"{files.reason(error)}."
            ) from error
        self._library.delete(take.id)
        self._takes[take.id] = replace(take, samples=_NONE), begin, len(take.samples)

    def delete_again(self) -> None:
        """Delete those that were restored. Raises :class:`LibraryError`."""
        for one in self._takes:
            if one in self._library:
                self._library.delete(one)

    def restore(self) -> None:
        """Put those that are not in the library back, as they were. Raises :class:`LibraryError`."""
        for name, (take, begin, frames) in self._takes.items():
            if name not in self._library:
                self._library.add(replace(take, samples=self._kept(begin, frames)))

    def _keep(self, samples: np.ndarray) -> int:
        """Add ``samples``, float32, (n,), to the file; the byte where they begin. Raises :class:`OSError`."""
        if self._file is None:
            # On the disk of the library: the usual folder for temporary files is in memory on many machines.
            self._file = tempfile.TemporaryFile(prefix=files.TEMPORARY, dir=self._library.folder)  # noqa: SIM115
        begin = self._file.seek(0, 2)
        self._file.write(samples.astype(_SAMPLE).tobytes())
        self._file.flush()
        return begin

    def _kept(self, begin: int, frames: int) -> np.ndarray:
        if self._file is None:
            return _NONE
        try:
            self._file.seek(begin)
            content = self._file.read(frames * _SAMPLE.itemsize)
        except OSError as error:
            raise LibraryError(f"The audio of a deleted take could not be read: {files.reason(error)}.") from error
        return np.frombuffer(content, _SAMPLE)
