"""Errors of voice and latent frames of natural speech, as far as they are heard."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paretone.models.minis.natural_decoder import PITCH, PITCH_SCALE, VOICING, NaturalDecoder

CENTS = PITCH_SCALE * 1200 / math.log(2)
"""Of one unit of a frame's pitch."""
AUDIBLE = -8.0
"""Log magnitude under which nothing is compared: 70 dB below full scale."""


def frame_error(made: Tensor, wanted: Tensor, pitch_weight: float) -> Tensor:
    """Mean absolute error of frames (B, n, numbers). Without voice the pitch is between what surrounds it, and counts
    as every other number; with voice it counts ``pitch_weight`` times."""
    weights = torch.ones_like(wanted)
    weights[:, :, PITCH] = torch.where(wanted[:, :, VOICING] > 0, pitch_weight, 1.0)
    return (weights * (made - wanted).abs()).mean()


def spectral_error(decoder: NaturalDecoder, made: Tensor, wanted: Tensor) -> Tensor:
    """Mean absolute error of the log magnitudes that ``decoder`` makes of frames (B, n, numbers), as far as they are
    audible."""
    with torch.no_grad():
        theirs = _magnitudes(decoder, wanted)
    ours = _magnitudes(decoder, made)
    return (ours.clamp(min=AUDIBLE) - theirs.clamp(min=AUDIBLE)).abs().mean()


def _magnitudes(decoder: NaturalDecoder, frames: Tensor) -> Tensor:
    """(3, B · n, bins): of the pulses, the noise and the free part."""
    hidden = decoder.space.hidden(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
    spectra = decoder.network(hidden.mT)
    return torch.stack([spectra.harmonic, spectra.noise, spectra.free]).float()
