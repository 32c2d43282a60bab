"""What small networks over mels have in common: statistics of the corpus among their weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MelStatistics(nn.Module):
    """Mean and scale of every band, (bands,), as buffers: callers give and get plain log mels."""

    mel_mean: Tensor
    mel_scale: Tensor

    def __init__(self, bands: int) -> None:
        super().__init__()
        self.register_buffer("mel_mean", torch.zeros(bands))
        self.register_buffer("mel_scale", torch.ones(bands))

    def normalised(self, mel: Tensor) -> Tensor:
        """Log mel (…, bands) with mean zero and variance one over the corpus."""
        return (mel - self.mel_mean) / self.mel_scale

    def log_mel(self, normalised: Tensor) -> Tensor:
        """The log mel (…, bands) of what :meth:`normalised` returns."""
        return normalised * self.mel_scale + self.mel_mean
