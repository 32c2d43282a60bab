"""Interface of weights for exports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from torch import Tensor

from engine.errors import CheckpointError
from engine.export.delivery import Content
from engine.models.f5.checkpoint import SIDECAR
from engine.models.f5.phones import VOCABULARY


class ExportedWeights(Protocol):
    """Weights that are exported with a profile, or alone."""

    tensors: Mapping[str, Tensor]
    """By official names."""

    @property
    def name(self) -> str:
        """Name of their file."""

    def contents(self) -> dict[str, Content]:
        """The files by name."""


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
