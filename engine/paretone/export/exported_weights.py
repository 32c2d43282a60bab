"""Weights that are exported: their interface, and safetensors files written tensor by tensor.

Format: https://github.com/huggingface/safetensors#format. The library's own writer needs the whole file in memory, and
puts the metadata into another order every time; a second export of the same weights has to be the same to the byte, or
it would not be known for the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.export.delivery import Content, Copied, Made
from paretone.models.f5.checkpoint import SIDECAR
from paretone.models.f5.front_end import VOCABULARY
from paretone.models.files.checkpoints import is_packed_file, plain_file


class ExportedWeights(Protocol):
    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """By official names."""

    @property
    def name(self) -> str:
        """Name of their file."""

    def contents(self) -> dict[str, Content]:
        """The files by name."""


def plain_content(path: Path) -> Content:
    """The weights at ``path`` for other software: copied, or unpacked if only Paretone can read the file. Raises
    :class:`CheckpointError`."""
    return plain_file(path) if is_packed_file(path) else Copied(path)


def packed_checkpoint(path: Path) -> dict[str, Content]:
    """The checkpoint at ``path`` and its companions if other software cannot read the file that this installation has,
    otherwise nothing. Raises :class:`CheckpointError`."""
    return {path.name: plain_file(path), **companions(path.parent)} if is_packed_file(path) else {}


def companions(source: Path) -> dict[str, Content]:
    """What else a folder of weights needs that Paretone loads, where it lies in the model's folder ``source``: what
    describes the architecture, and the vocabulary. Raises :class:`CheckpointError` if that cannot be read."""
    found: dict[str, Content] = {}
    for name in (SIDECAR, VOCABULARY):
        path = source / name
        try:
            if path.is_file():
                found[name] = path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read ({error.strerror}); download the model again.") from error
    return found


# --- Safetensors ------------------------------------------------------------------------------------------------------
_KINDS = {
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
    """The file of ``tensors``, on the CPU, by name, with ``metadata``; nothing is copied before it is written."""
    # The widest first, as the library does, so that every tensor is aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header = _header({name: tensors[name] for name in names}, metadata)
    size = len(header) + sum(map(_bytes, tensors.values()))

    def write(path: Path, wrote: Callable[[int], None]) -> None:
        with path.open("wb") as file:
            wrote(file.write(header))
            for name in names:
                # Flat, because a single number has no dimension to be viewed along.
                wrote(file.write(tensors[name].detach().contiguous().flatten().view(torch.uint8).numpy().data))

    return Made(write, size)


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    described: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    start = 0
    for name, value in tensors.items():
        offsets = [start, start + _bytes(value)]
        described[name] = {"dtype": _KINDS[value.dtype], "shape": list(value.shape), "data_offsets": offsets}
        start = offsets[1]
    text = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
    text = text.ljust(-(-len(text) // _ALIGNMENT) * _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def _bytes(value: Tensor) -> int:
    return value.numel() * value.element_size()
