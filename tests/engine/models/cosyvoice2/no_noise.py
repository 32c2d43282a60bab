"""Silence in place of a vocoder's noise: what is left can be compared."""

from __future__ import annotations

import torch
from torch import Tensor

from paretone.models.cosyvoice2.config import HiftConfig


class NoNoise:
    """See :class:`paretone.models.cosyvoice2.hift.Noise`."""

    def __init__(self, config: HiftConfig) -> None:
        self._shape = (config.samples_per_frame, config.harmonics + 1)

    def draw(self, frames: int) -> Tensor:
        """Zeros for the next frames."""
        return torch.zeros(1, frames * self._shape[0], self._shape[1])
