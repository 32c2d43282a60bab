"""SHA-256 of files, remembered for as long as size and time of change are the same. Torch-free."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path

_BLOCK = 1 << 22
_KNOWN: dict[tuple[str, int, int], str] = {}


def sha256(path: Path, check: Callable[[], None] = lambda: None) -> str:
    """Of the file at ``path``, 64 hexadecimal digits. ``check`` is called every few megabytes and may raise to cancel.
    Raises :class:`OSError`."""
    status = path.stat()
    key = str(path.resolve()), status.st_size, status.st_mtime_ns
    if key not in _KNOWN:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for block in iter(functools.partial(file.read, _BLOCK), b""):
                check()
                digest.update(block)
        _KNOWN[key] = digest.hexdigest()
    return _KNOWN[key]
