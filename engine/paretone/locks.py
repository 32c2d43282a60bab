"""Having something to oneself among all processes of a machine. Torch-free.

SQLite holds the lock: it works alike on all systems, and a process that dies lets go of it by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from paretone.reading import require_regular

_TRY_SECONDS = 0.5


class LockedError(Exception):
    """Another process has it."""


class UnusableError(OSError):
    """What should be held cannot be."""


@contextmanager
def held(path: Path, waiting: Callable[[], object] | None = None) -> Iterator[None]:
    """Hold ``path``, a file that is made if there is none, for as long as the block runs.

    Where another process holds it, this waits for it and calls ``waiting`` twice a second, which may raise; without
    ``waiting`` it raises :class:`LockedError` at once. Raises :class:`UnusableError` if ``path`` cannot be made.
    """
    lock = None
    try:
        try:
            if path.exists():
                require_regular(path)  # SQLite would wait for ever at a pipe.
            lock = sqlite3.connect(path, timeout=_TRY_SECONDS if waiting else 0.0, isolation_level=None)
            while not _taken(lock):
                if waiting is None:
                    raise LockedError(path)
                waiting()
        except OSError as error:
            raise UnusableError(
                f"{path} could not be held: {(error.strerror or str(error)).partition(';')[0]}"
            ) from error
        except sqlite3.Error as error:
            raise UnusableError(f"{path} could not be held: {error}") from error
        yield
    finally:
        if lock is not None:
            lock.close()


def _taken(lock: sqlite3.Connection) -> bool:
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
