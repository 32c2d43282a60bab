"""Bundled weights are those that were shipped: their SHA-256 is listed in ``resources/models/fingerprints.json``.

A damaged disk, a half-finished copy or another file under the same name would speak noise without a word. What a model
is identified by is hashed when it is loaded anyway, and only compared here; the parts next to it (vocoder, codec,
speech tokenizer) are hashed by a thread while the model is read and warms up.

Weights are packed in the installable package (:mod:`paretone.models.files.packed_weights`). They are still those that
were packed: ``packed.json`` next to the list names, for the SHA-256 of each packed file, that of the original, by which
profiles, takes and studies know these weights in a clone and in a package alike. Only files that ship are in it, so
that no other file can pass for them.

``python -m paretone.models.files.bundled`` writes both lists anew, after the weights that ship have changed.
Torch-free."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from paretone.errors import CheckpointError
from paretone.files import write_atomically
from paretone.models.files import digests
from paretone.models.files.packed_weights import origin
from paretone.paths import resource
from paretone.reading import read_json

LIST, PACKED_LIST = "fingerprints.json", "packed.json"
SUFFIX = ".safetensors"


def root() -> Path:
    """Folder of all bundled models."""
    return resource("models")


def listed() -> Mapping[str, str]:
    """SHA-256 of each bundled weight file, before it was packed, by its path in :func:`root`. Raises
    :class:`CheckpointError`."""
    return _list(root() / LIST)


def original(digest: str) -> str:
    """What identifies the weights in a file with the SHA-256 ``digest``: that of the file that was packed, if it is one
    of those that ship packed. Raises :class:`CheckpointError`."""
    return _list(root() / PACKED_LIST, needed=False).get(digest, digest)


@functools.cache
def _list(path: Path, needed: bool = True) -> Mapping[str, str]:
    """A list of SHA-256, empty if there is none and it is not ``needed``."""
    if not needed and not path.exists():
        return {}
    try:
        data = read_json(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); install Paretone again.") from None
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
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
    """What identifies the weights in the file at ``path``, see :func:`original`. Raises :class:`CheckpointError`."""
    try:
        return original(digests.sha256(path))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error}); install Paretone again.") from None


def _name(path: Path) -> str:
    """The path in :func:`root`, or ``""``."""
    try:
        return path.resolve().relative_to(root()).as_posix()
    except ValueError:
        return ""


def write_lists(folder: Path) -> int:
    """Write both lists for the weight files in ``folder``, of which the second is left out if none is packed; the
    number of files. Raises :class:`OSError`, and :class:`CheckpointError` for a file that is no safetensors file."""
    known, packed = {}, {}
    for path in sorted(folder.rglob(f"*{SUFFIX}")):
        digest = digests.sha256(path)
        identity = origin(path) or digest
        known[path.relative_to(folder).as_posix()] = identity
        if identity != digest:
            packed[digest] = identity
    write_atomically(folder / LIST, _json(known))
    if packed:
        write_atomically(folder / PACKED_LIST, _json(packed))
    else:
        (folder / PACKED_LIST).unlink(missing_ok=True)
    return len(known)


def _json(data: Mapping[str, str]) -> bytes:
    return (json.dumps(data, indent=1) + "\n").encode()


def main() -> int:
    """Write the lists."""
    print(f"{root() / LIST}: {write_lists(root())} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
