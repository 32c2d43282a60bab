"""Voice frames of clips of natural speech."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from paretone.models.minis.natural_decoder import FORMANT, FORMANT_MEAN, FORMANT_SCALE, VOICE
from paretone.training.natural_corpus import NaturalClip


def voice_frames(clip: NaturalClip) -> Tensor:
    """(latent frames, 36) of ``clip``, at the level of an F5 prompt."""
    frames = torch.zeros(len(clip.latents), VOICE)
    frames[:, :FORMANT] = torch.from_numpy(clip.latents.astype(np.float32))
    frames[:, FORMANT] = (clip.formant - FORMANT_MEAN) / FORMANT_SCALE
    return frames
