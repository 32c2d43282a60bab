"""Mels of recordings that lack high frequencies: telephones, old microphones, other sample rates."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paretone.audio.mel import htk_filterbank

SAMPLE_RATE, WINDOW = 24_000, 1_024
FLOOR = math.log(1e-5)
"""The lowest value of a mel."""


def centres(bands: int) -> Tensor:
    """(bands,) hertz at the middle of each band."""
    return htk_filterbank(SAMPLE_RATE, WINDOW, bands).argmax(0) * (SAMPLE_RATE / WINDOW)


def band_limited(mel: Tensor, edge: Tensor, slope: Tensor, depth: Tensor) -> Tensor:
    """Natural-log mel (B, bands, n) of the same sounds through low-passes that begin at ``edge`` (B,) hertz and take
    ``depth`` (B,) nepers away from ``slope`` (B,) hertz above it."""
    beyond = (centres(mel.shape[1]).to(mel.device) - edge[:, None]) / slope[:, None]
    return torch.maximum(mel - (depth[:, None] * beyond.clamp(0, 1))[:, :, None], mel.clamp(max=FLOOR))
