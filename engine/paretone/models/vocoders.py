"""The vocoders of mel models: what they have in common, and which one lies in a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.minis.natural_vocoder import LatentVocoder
from paretone.models.networks.vocos import Vocos

BIGVGAN_WEIGHTS = "bigvgan_generator.pt"


class Vocoder(Protocol):
    """From mel to audio."""

    def decode(self, mel: Tensor) -> Tensor:
        """Audio of a natural-log mel spectrogram: (B, bands, frames) to (B, (frames - 1) · 256) float32 at 24 kHz."""


def load_vocoder(folder: Path, device: torch.device | str = "cpu", check: Callable[[], None] = lambda: None) -> Vocoder:
    """The vocoder in ``folder``, of natural speech or official. ``check`` is called between the parts and may raise to
    cancel. Raises :class:`paretone.errors.CheckpointError` that names the file at fault."""
    if LatentVocoder.is_at(folder):
        check()
        return LatentVocoder.load(folder, device)
    if (folder / BIGVGAN_WEIGHTS).is_file():
        raise CheckpointError(
            f"{folder} holds a BigVGAN, which Paretone does not have; give the folder of vocos-mel-24khz, and a "
            "checkpoint that was trained for it."
        )
    return Vocos.load(folder, device, check)
