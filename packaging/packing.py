"""Pack the bundled weights for a wheel; :mod:`paretone.models.files.bundled` says how, and reads them.

As a script, this file rewrites the lists of their fingerprints, after they have changed. Package registries limit files
to 100 MiB, and half precision hardly compresses. The repository keeps the weights as trained.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from paretone.files import TEMPORARY, write_atomically
from paretone.models.files import bundled
from paretone.models.files.layer_importance import renumbered

LARGEST = 127
"""Largest absolute value of the integers."""
STEPS_PER_DEVIATION = 5
"""Resolution of differences: with five steps per standard deviation the error is 6 % of it, and deflate, which
compresses wheels, needs five bits per number."""
SMALLEST, SHORTEST_ROW = 4096, 32
"""Least size of a packed matrix and of its rows, in numbers: below these, the steps would take more than packing
saves."""


def pack_models(source: Path, target: Path) -> None:
    """Pack every weight file in the folder of models ``source`` into the same place in ``target``, and write
    their lists; other files are not touched. Weights whose metadata name another file there as their base are stored
    as differences from it. Nothing else may write into ``target``: temporary files of a killed process are removed,
    since the entire folder ships. Raises :class:`OSError` and, for a damaged file,
    :class:`safetensors.SafetensorError`."""
    for left in target.rglob(f"{TEMPORARY}*"):
        left.unlink()
    paths = sorted(source.rglob(f"*{bundled.SUFFIX}"))
    identities = {path: _identity(path) for path in paths}
    by_identity = {identity: path for path, identity in identities.items()}
    bases = {path: by_identity.get(_metadata(path).get("base", "")) for path in paths}
    for path in sorted(paths, key=lambda one: bases[one] is not None):  # bases first
        there, base = target / path.relative_to(source), bases[path]
        there.parent.mkdir(parents=True, exist_ok=True)
        packed_base = None if base is None else target / base.relative_to(source)
        write_atomically(there, packed(path, identities[path], there, packed_base))
    write_lists(target)


def write_lists(folder: Path) -> int:
    """Write both lists for the weight files in ``folder``, the second only if any is packed; return the number of
    files. Raises :class:`OSError`, and :class:`CheckpointError` for a file that is not a safetensors file."""
    known, packed = {}, {}
    for path in sorted(folder.rglob(f"*{bundled.SUFFIX}")):
        digest = bundled.file_sha256(path)
        identity = origin(path) or digest
        known[path.relative_to(folder).as_posix()] = identity
        if identity != digest:
            packed[digest] = identity
    write_atomically(folder / bundled.LIST, _json(known))
    if packed:
        write_atomically(folder / bundled.PACKED_LIST, _json(packed))
    else:
        (folder / bundled.PACKED_LIST).unlink(missing_ok=True)
    return len(known)


def _json(data: Mapping[str, str]) -> bytes:
    return (json.dumps(data, indent=1) + "\n").encode()


def origin(path: Path) -> str:
    """SHA-256 of the original of the packed file at ``path``, or ``""`` if the file is not packed. Raises
    :class:`OSError` and :class:`safetensors.SafetensorError`."""
    with safe_open(path, framework="np") as file:
        told = file.metadata() or {}
    return told[bundled.ORIGIN] if bundled.PACKED in told else ""


def packed(path: Path, identity: str, there: Path, base: Path | None) -> bytes:
    """Pack the weights in the file at ``path`` for a file at ``there``, as differences from the packed weights at
    ``base`` if given; return the file unchanged if none of its tensors is worth packing. ``identity`` is the SHA-256
    that identifies the weights."""
    told, tensors = _read(path)
    told |= {bundled.PACKED: bundled.FORMAT, bundled.ORIGIN: identity}
    bases: dict[str, np.ndarray] = {}
    if base is not None:
        told |= {
            bundled.BASE: Path(os.path.relpath(base, there.parent)).as_posix(),
            bundled.BASE_DIGEST: bundled.file_sha256(base),
        }
        bases = _read(base)[1]
        # Drafts keep the base's layer numbers, students count from 0.
        if told.get("kind") == "student":
            told[bundled.LAYERS] = told["retained"]
            of_base = dict(enumerate(json.loads(told["retained"])))
            bases = {name: bases[here] for name in tensors if (here := renumbered(name, of_base)) in bases}
    stored: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        counterpart = bases.get(name)
        fits = base is None or (counterpart is not None and counterpart.shape == value.shape)
        if not _is_worth_packing(value) or not fits:
            stored[name] = value
            continue
        if counterpart is None:
            whole, steps = whole_numbers(value)
        else:
            whole, steps = whole_numbers(value - counterpart.astype(np.float32), STEPS_PER_DEVIATION)
        stored |= {name: whole, f"{name}{bundled.STEPS}": steps}
    if len(stored) == len(tensors) and bundled.ORIGIN not in _metadata(path):
        return path.read_bytes()
    return bundled.with_sorted_metadata(save(stored, told))


def whole_numbers(values: np.ndarray, per_deviation: float = math.inf) -> tuple[np.ndarray, np.ndarray]:
    """Quantise ``values``, (rows, …), to int8 numbers of the same shape with float32 steps, (rows,): as fine as the
    largest value of a row allows, or coarser, with ``per_deviation`` steps to the row's standard deviation around
    zero."""
    rows = values.astype(np.float32).reshape(len(values), -1)
    steps = np.maximum(np.abs(rows).max(1) / LARGEST, np.sqrt((rows**2).mean(1)) / per_deviation).astype(np.float32)
    divisors = np.where(steps > 0, steps, 1)[:, None]
    whole = np.clip(np.rint(rows / divisors), -LARGEST, LARGEST).astype(np.int8)
    return whole.reshape(values.shape), steps


def _is_worth_packing(value: np.ndarray) -> bool:
    rows = len(value) if value.ndim > 1 else value.size
    return value.dtype == np.float16 and value.size >= SMALLEST and value.size >= SHORTEST_ROW * rows


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata and tensors of a weight file, packed or not."""
    with safe_open(path, framework="np") as file, bundled.unpacking(file, path, "np") as plain:
        return plain.metadata() or {}, {name: plain.get_tensor(name) for name in plain.keys()}  # noqa: SIM118


def _metadata(path: Path) -> Mapping[str, str]:
    with safe_open(path, framework="np") as file:
        return file.metadata() or {}


def _identity(path: Path) -> str:
    return _metadata(path).get(bundled.ORIGIN) or bundled.file_sha256(path)


if __name__ == "__main__":
    print(f"{bundled.root() / bundled.LIST}: {write_lists(bundled.root())} files")
