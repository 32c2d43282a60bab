"""Packing the bundled weights for the installable package, see :mod:`paretone.models.files.bundled`. Torch-free.

Package registries take files of 100 MiB, and half precision hardly compresses. ``packaging/packed_build.py`` calls
:func:`pack_models` when a wheel is built; the repository keeps the weights as they were trained.
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
from paretone.models.files.bundled import (
    BASE,
    BASE_DIGEST,
    FORMAT,
    LAYERS,
    ORIGIN,
    PACKED,
    STEPS,
    unpacking,
    with_sorted_metadata,
)
from paretone.models.files.layer_importance import renumbered

LARGEST = 127
"""Largest whole number, up and down."""
STEPS_PER_DEVIATION = 5
"""How finely differences are kept: with five steps to their standard deviation the error is 6 % of them, and
deflate, which wheels are compressed with, needs five bits for each."""
SMALLEST, SHORTEST_ROW = 4096, 32
"""Numbers of the smallest matrix that is packed, and of its shortest row: below these, the steps would weigh more than
what is won."""


def pack_models(source: Path, target: Path) -> None:
    """Pack every weight file of the folder of models ``source`` to the same place in ``target``, together with the
    lists of :mod:`paretone.models.files.bundled`; other files are not touched. Weights whose metadata name another file
    there as their base are kept as differences from it. Nothing else may write into ``target``: what a killed process
    left half written there is removed, since all of the folder ships. Raises :class:`OSError` and, for a damaged file,
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
    bundled.write_lists(target)


def packed(path: Path, identity: str, there: Path, base: Path | None) -> bytes:
    """The weights in the file at ``path`` as a packed file at ``there``, as differences from the packed weights at
    ``base`` if that is given; the file as it is if none of its tensors is worth packing. ``identity`` is the SHA-256
    that the weights are known by."""
    told, tensors = _read(path)
    told |= {PACKED: FORMAT, ORIGIN: identity}
    bases: dict[str, np.ndarray] = {}
    if base is not None:
        told |= {BASE: Path(os.path.relpath(base, there.parent)).as_posix(), BASE_DIGEST: bundled.file_sha256(base)}
        bases = _read(base)[1]
        # Drafts keep the numbers of the layers, students count theirs from 0.
        if told.get("kind") == "student":
            told[LAYERS] = told["retained"]
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
        stored |= {name: whole, f"{name}{STEPS}": steps}
    if len(stored) == len(tensors) and ORIGIN not in _metadata(path):
        return path.read_bytes()
    return with_sorted_metadata(save(stored, told))


def whole_numbers(values: np.ndarray, per_deviation: float = math.inf) -> tuple[np.ndarray, np.ndarray]:
    """``values``, (rows, …), as int8 numbers of the same shape and their float32 steps, (rows,): as fine as the largest
    of a row allows, or coarser, with ``per_deviation`` steps to the standard deviation of the row around zero."""
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
    with safe_open(path, framework="np") as file, unpacking(file, path, "np") as plain:
        return plain.metadata() or {}, {name: plain.get_tensor(name) for name in plain.keys()}  # noqa: SIM118


def _metadata(path: Path) -> Mapping[str, str]:
    with safe_open(path, framework="np") as file:
        return file.metadata() or {}


def _identity(path: Path) -> str:
    return _metadata(path).get(ORIGIN) or bundled.file_sha256(path)
