"""What is said, apart from who says it: latent frames whose pitch is on that of the voice.

A voice of natural speech is a pitch and a formant scale; the components of a latent frame do not depend on it. Tokens
are made of what is said, and who says it is added when they are decoded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paretone.models.minis.natural.layout import FORMANT, LATENT, PITCH, VOICE, VOICING


@dataclass(frozen=True)
class NaturalVoice:
    """Who speaks, in units of a voice frame."""

    pitch: float
    """Mean where there is voice."""
    formant: float

    @classmethod
    def of(cls, frames: Tensor) -> NaturalVoice:
        """The voice of a recording's voice frames (n, 36), of which some must have voice to tell its pitch; without,
        it is the corpus's mean."""
        voiced = frames[:, VOICING] > 0
        pitch = float(frames[voiced, PITCH].mean()) if voiced.any() else 0.0
        return cls(pitch, float(frames[:, FORMANT].median()))

    def said(self, frames: Tensor) -> Tensor:
        """Remove the speaker's pitch: voice frames (…, n, 36) to (…, n, 34)."""
        said = frames[..., :LATENT].clone()
        said[..., PITCH] -= self.pitch
        return said

    def frames(self, said: Tensor) -> Tensor:
        """Add the speaker's pitch: (…, n, 34) to voice frames (…, n, 36) at the mean level."""
        frames = torch.cat([said, said.new_zeros(*said.shape[:-1], VOICE - LATENT)], dim=-1)
        frames[..., PITCH] += self.pitch
        frames[..., FORMANT] = self.formant
        return frames
