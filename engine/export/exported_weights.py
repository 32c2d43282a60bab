"""Interface of weights for exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor


class ExportedWeights(Protocol):
    """Weights that are exported with a profile, or alone."""

    tensors: Mapping[str, Tensor]
    """By official names."""

    @property
    def name(self) -> str:
        """Name of their file."""

    def contents(self) -> dict[str, bytes]:
        """The files by name."""
