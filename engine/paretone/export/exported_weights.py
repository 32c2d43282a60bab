"""Exported weights: their interface, and safetensors files written tensor by tensor.

Format: https://github.com/huggingface/safetensors#format. The library's own writer needs the whole file in memory and
varies the order of the metadata; a second export of the same weights must be identical to the byte to be recognised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.export.delivery import Content, Made
from paretone.models.f5.config import SIDECAR
from paretone.models.f5.front_end import VOCABULARY
from paretone.models.files.checkpoints import is_packed_file, plain_file
from paretone.reading import readable


class ExportedWeights(Protocol):
    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """Tensors by official name."""

    @property
    def name(self) -> str: ...

    def contents(self) -> dict[str, Content]: ...


def packed_checkpoint(path: Path) -> dict[str, Content]:
    """Unpacked checkpoint at ``path`` with its companions if only Paretone can read the installed file, otherwise
    nothing. Raises :class:`CheckpointError`."""
    return {path.name: plain_file(path), **companions(path.parent)} if is_packed_file(path) else {}


def companions(source: Path) -> dict[str, Content]:
    """Further files that Paretone needs to load weights, from the model's folder ``source``: description of the
    architecture and vocabulary. Raises :class:`CheckpointError` if they cannot be read."""
    found: dict[str, Content] = {}
    for name in (SIDECAR, VOCABULARY):
        path = source / name
        with readable(CheckpointError, f"{path} cannot be read", "download the model again"):
            if path.is_file():
                found[name] = path.read_bytes()
    return found


# --- Safetensors ------------------------------------------------------------------------------------------------------
DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_ALIGNMENT = 8


def safetensors_file(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Made:
    """File of ``tensors``, on the CPU, by name, with ``metadata``; nothing is copied before writing."""
    # Widest type first, like the library, so that every tensor is aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header = _header({name: tensors[name] for name in names}, metadata)
    size = len(header) + sum(value.nbytes for value in tensors.values())

    def write(path: Path, wrote: Callable[[int], None]) -> None:
        with path.open("wb") as file:
            wrote(file.write(header))
            for name in names:
                # Flattened, because a scalar has no dimension to view along.
                wrote(file.write(tensors[name].detach().contiguous().flatten().view(torch.uint8).numpy().data))

    return Made(write, size)


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    described: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    start = 0
    for name, value in tensors.items():
        offsets = [start, start + value.nbytes]
        described[name] = {"dtype": DTYPES[value.dtype], "shape": list(value.shape), "data_offsets": offsets}
        start = offsets[1]
    text = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
    text = text.ljust(-(-len(text) // _ALIGNMENT) * _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text
