"""Between a hidden frame of the decoder, with its pitch, and the 34 numbers of a latent frame."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from paretone.models.minis.natural.layout import (
    COMPONENTS,
    HIDDEN,
    LOWEST_VOICED,
    PITCH,
    PITCH_MEAN,
    PITCH_SCALE,
    VOICING,
)


class LatentSpace(nn.Module):
    """Principal components of the teacher's hidden frames."""

    mean: Tensor
    directions: Tensor
    deviations: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(HIDDEN))
        self.register_buffer("directions", torch.zeros(COMPONENTS, HIDDEN))
        """Orthonormal rows."""
        self.register_buffer("deviations", torch.ones(COMPONENTS))

    def latents(self, hidden: Tensor, pitch: Tensor) -> Tensor:
        """Hidden frames (n, 256) and their pitch (n,) in hertz, 0 without voice, to latent frames (n, 34)."""
        components = (hidden - self.mean) @ self.directions.T / self.deviations
        voiced = pitch > LOWEST_VOICED
        voicing = torch.where(voiced, 1.0, -1.0)
        return torch.cat([components, self._log_pitch(pitch, voiced)[:, None], voicing[:, None]], dim=1)

    @staticmethod
    def _log_pitch(pitch: Tensor, voiced: Tensor) -> Tensor:
        """Normalised, and interpolated where there is no voice."""
        if not voiced.any():
            return torch.zeros_like(pitch)
        known = torch.nonzero(voiced)[:, 0].numpy()
        logarithm = (np.log(pitch.numpy()[known]) - PITCH_MEAN) / PITCH_SCALE
        return torch.from_numpy(np.interp(np.arange(len(pitch)), known, logarithm).astype(np.float32))

    def hidden(self, latents: Tensor) -> Tensor:
        """Latent frames (n, ≥ 32) to hidden frames (n, 256)."""
        return latents[:, :COMPONENTS] * self.deviations @ self.directions + self.mean

    @staticmethod
    def pitch(latents: Tensor) -> Tensor:
        """(n,) hertz of latent frames (n, ≥ 34), 0 without voice."""
        pitch = (latents[:, PITCH] * PITCH_SCALE + PITCH_MEAN).exp()
        return torch.where(latents[:, VOICING] > 0, pitch, 0.0)
