"""Packed weights: how the installable package keeps what it ships. Torch-free, except that others ask it for tensors.

A packed file is a safetensors file in which a matrix of half precision is an int8 tensor of the same name and shape,
with a tensor of float32 steps, one a row (the first axis), called after it with :data:`STEPS`:

    value = float16(step × whole number)              of a checkpoint
    value = float16(base + step × whole number)       of weights that were trained from another checkpoint

computed in float32; ``base`` is the value of that checkpoint, read as it is kept there. What is small, or has no
counterpart in the base, stays as it was. The metadata are those of the original file and, in addition:

``packed``         :data:`FORMAT`
``packed_from``    SHA-256 of the file that was packed: what identifies these weights
``packed_base``    path of the base, relative to the folder of this file; left out if there is none
``packed_sha256``  SHA-256 of the base's file: no other numbers may be added to
``packed_layers``  JSON: which layer of the base each layer is, for weights without some of its layers

Readers see the original's names, shapes and metadata: :func:`unpacking` stands between them and the file.
:mod:`paretone.models.files.packing` writes such files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from paretone.errors import CheckpointError
from paretone.models.files.digests import sha256
from paretone.models.files.pruning import renumbered
from paretone.reading import first_line, parsed_json, require_regular, shown

FORMAT = "1"
PACKED, ORIGIN = "packed", "packed_from"
BASE, BASE_DIGEST, LAYERS = "packed_base", "packed_sha256", "packed_layers"
KEYS = PACKED, ORIGIN, BASE, BASE_DIGEST, LAYERS
STEPS = ".packed_steps"
"""End of the name of a matrix's steps."""


def is_packed(metadata: Mapping[str, str]) -> bool:
    """Whether a file with these ``metadata`` is packed."""
    return PACKED in metadata


def origin(path: Path) -> str:
    """What the packed file at ``path`` was packed from: its SHA-256, or ``""`` if the file is not packed. Raises
    :class:`OSError` and :class:`safetensors.SafetensorError`."""
    with safe_open(path, framework="np") as file:
        told = file.metadata() or {}
    return told[ORIGIN] if is_packed(told) else ""


def unpacked(whole: np.ndarray, steps: np.ndarray, base: np.ndarray | None = None) -> np.ndarray:
    """The float16 values of int8 numbers, (rows, …), with float32 ``steps``, (rows,); ``base``, of the same shape, is
    added. Every processor finds the same numbers: each operation is rounded by itself."""
    # Damaged files can give any value; the reader refuses what is no weight.
    with np.errstate(over="ignore", invalid="ignore"):
        values = whole.astype(np.float32)
        values *= steps.reshape(-1, *[1] * (whole.ndim - 1))
        if base is not None:
            values += base
        return values.astype(np.float16)


class PackedFile:
    """A packed file that is open, as if it were not packed: with the methods of what ``safe_open`` gives. What is read
    raises :class:`ValueError` for a damaged file, and :class:`CheckpointError` if its base is not there."""

    def __init__(
        self,
        file: Any,
        metadata: Mapping[str, str],
        open_base: Callable[[], Any],
        as_tensor: Callable[[np.ndarray], Any],
    ) -> None:
        if metadata[PACKED] != FORMAT:
            raise ValueError(f"it is packed in a form {shown(metadata[PACKED])} that this version does not know")
        self._file, self._told, self._open_base, self._as_tensor = file, metadata, open_base, as_tensor
        names = list(file.keys())
        self._packed = {name.removesuffix(STEPS) for name in names if name.endswith(STEPS)}
        self._names = [name for name in names if not name.endswith(STEPS)]
        self._layers = _layers(metadata)

    def keys(self) -> list[str]:
        """Names of the tensors."""
        return list(self._names)

    def metadata(self) -> dict[str, str]:
        """The metadata of the original."""
        return {name: value for name, value in self._told.items() if name not in KEYS}

    def get_slice(self, name: str) -> Any:
        """The shape of a tensor is that of the stored one."""
        return self._file.get_slice(name)

    def get_tensor(self, name: str) -> Any:
        """A tensor of the original."""
        stored = self._file.get_tensor(name)
        if name not in self._packed:
            return stored
        whole, steps = np.asarray(stored), np.asarray(self._file.get_tensor(f"{name}{STEPS}"))
        if whole.dtype != np.int8 or steps.dtype != np.float32 or steps.shape != whole.shape[:1]:
            raise ValueError(f"{shown(name)} and its steps do not fit each other")
        return self._as_tensor(unpacked(whole, steps, self._base(name, whole.shape)))

    def _base(self, name: str, shape: tuple[int, ...]) -> np.ndarray | None:
        if BASE not in self._told:
            return None
        there = name if self._layers is None else renumbered(name, self._layers)
        if there is None:
            raise ValueError(f"it does not say which layer of its base {shown(name)} belongs to")
        value = np.asarray(self._open_base().get_tensor(there))
        if value.dtype != np.float16 or value.shape != shape:
            raise ValueError(f"{shown(name)} does not fit {shown(there)} of its base")
        return value


def _layers(metadata: Mapping[str, str]) -> Mapping[int, int] | None:
    """Layers of the base by those of the file; ``None`` if they are the same."""
    if LAYERS not in metadata:
        return None
    listed = parsed_json(metadata[LAYERS])
    if not isinstance(listed, list) or not all(isinstance(one, int) and 0 <= one < 10**6 for one in listed):
        raise ValueError("it does not say which layers it has")
    return dict(enumerate(listed))


@contextlib.contextmanager
def unpacking(
    file: Any, path: Path, framework: str, as_tensor: Callable[[np.ndarray], Any] = lambda values: values
) -> Iterator[Any]:
    """``file``, which ``safe_open`` has opened at ``path`` for the ``framework``: itself if it is not packed, else what
    unpacks it with ``as_tensor`` as the last step. The base is opened when the first value needs it."""
    told = file.metadata() or {}
    if not is_packed(told):
        yield file
        return
    with contextlib.ExitStack() as stack:
        opened: list[Any] = []

        def open_base() -> Any:
            if not opened:
                opened.append(stack.enter_context(_opened_base(path, told, framework, as_tensor)))
            return opened[0]

        yield PackedFile(file, told, open_base, as_tensor)


@contextlib.contextmanager
def _opened_base(
    path: Path, told: Mapping[str, str], framework: str, as_tensor: Callable[[np.ndarray], Any]
) -> Iterator[Any]:
    """The base of the packed file at ``path``, open."""
    base = path.parent / told[BASE]
    try:
        require_regular(base)
        found = sha256(base)
    except (OSError, ValueError) as error:
        raise _without_base(path, base, f"which cannot be read: {first_line(error)}") from None
    if found != told.get(BASE_DIGEST):
        raise _without_base(path, base, f"whose SHA-256 should begin with {shown(told.get(BASE_DIGEST, '')[:12])}")
    with safe_open(base, framework=framework) as file:
        if BASE in (file.metadata() or {}):
            raise _without_base(path, base, "which itself holds differences only")
        with unpacking(file, base, framework, as_tensor) as plain:
            yield plain


def _without_base(path: Path, base: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"{path} holds differences from the checkpoint {base}, {why}. Install Paretone again; to use these weights "
        "elsewhere, export them."
    )
