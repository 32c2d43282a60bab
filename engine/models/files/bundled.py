"""Bundled weights are those that were shipped: their SHA-256 is listed in ``resources/models/fingerprints.json``.

A damaged disk, a half-finished copy or another file under the same name would speak noise without a word. What a model
is identified by is hashed when it is loaded anyway, and only compared here; the parts next to it (vocoder, codec,
speech tokenizer) are hashed by a thread while the model is read and warms up.

``python -m engine.models.files.bundled`` writes the list anew, after the weights that ship have changed. Torch-free.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from engine.errors import CheckpointError
from engine.files import write_atomically
from engine.paths import resource
from engine.reading import read_json

LIST = "fingerprints.json"
SUFFIX = ".safetensors"


def root() -> Path:
    """Folder of all bundled models."""
    return resource("models")


@functools.cache
def listed() -> Mapping[str, str]:
    """SHA-256 of each bundled weight file by its path in :func:`root`. Raises :class:`CheckpointError`."""
    path = root() / LIST
    try:
        data = read_json(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); install Paretone again.") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} is not a list of weights; install Paretone again.")
    return data


def require_shipped(path: Path, digest: str) -> None:
    """Raise :class:`CheckpointError` if ``path`` is bundled and ``digest``, the SHA-256 of what is there, is not that
    of what was shipped."""
    name = _name(path)
    if name in listed() and listed()[name] != digest:
        raise CheckpointError(
            f"{path} is not the file that Paretone ships: its SHA-256 begins with {digest[:12]}, not with "
            f"{listed()[name][:12]}. Install Paretone again, or load your own weights from a folder of their own."
        )


def verified_meanwhile(folders: Iterable[Path]) -> Callable[[], None]:
    """Begin to hash the bundled weight files directly in ``folders``. The function that is returned waits for it, and
    raises :class:`CheckpointError` for a file that is not as it was shipped."""
    wanted = {_name(folder) for folder in folders} - {""}
    paths = [root() / name for name in listed() if Path(name).parent.as_posix() in wanted]
    if not paths:
        return lambda: None
    pool = ThreadPoolExecutor(1, "fingerprints")
    hashed = [(path, pool.submit(sha256, path)) for path in paths]
    pool.shutdown(wait=False)

    def require_all() -> None:
        for path, future in hashed:
            require_shipped(path, future.result())

    return require_all


def sha256(path: Path) -> str:
    """Of a file, hexadecimal; remembered as long as size and time of change are the same. Raises
    :class:`CheckpointError`."""
    try:
        status = path.stat()
        return _sha256(str(path), status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error}); install Paretone again.") from None


@functools.cache
def _sha256(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _name(path: Path) -> str:
    """The path in :func:`root`, or ``""``."""
    try:
        return path.resolve().relative_to(root()).as_posix()
    except ValueError:
        return ""


def main() -> int:
    """Write the list."""
    paths = sorted(root().rglob(f"*{SUFFIX}"))
    found = {path.relative_to(root()).as_posix(): sha256(path) for path in paths}
    write_atomically(root() / LIST, (json.dumps(found, indent=1) + "\n").encode())
    print(f"{root() / LIST}: {len(found)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
