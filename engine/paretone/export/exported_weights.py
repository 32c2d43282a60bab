"""Interface of weights for exports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from torch import Tensor

from paretone.errors import CheckpointError
from paretone.export.delivery import Content, Copied
from paretone.models.f5.checkpoint import SIDECAR
from paretone.models.f5.front_end import VOCABULARY
from paretone.models.files.checkpoints import is_packed_file, plain_file


class ExportedWeights(Protocol):
    """Weights that are exported with a profile, or alone."""

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
