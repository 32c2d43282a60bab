"""What an export asks of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor


class ExportedWeights(Protocol):
    """Weights that are written with a profile, or by themselves."""

    tensors: Mapping[str, Tensor]
    """By official names."""

    @property
    def name(self) -> str:
        """What their file is called."""

    def contents(self) -> dict[str, bytes]:
        """The files by name."""
