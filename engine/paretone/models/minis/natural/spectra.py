"""Hidden frames to the five spectra that natural speech is put together from.

The layout is that of hibari's decoder from its fifth block on: ConvNeXt blocks, a norm, and one linear layer. Its
weights are whole numbers of eight bits with one scale a matrix, and stay so in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from paretone.models.files.checkpoints import in_float32
from paretone.models.minis.natural.formants import moved_magnitudes, moved_phases
from paretone.models.minis.natural.layout import BINS, HIDDEN, WINDOW
from paretone.models.networks.shapes import Modules
from paretone.models.networks.vocos import ConvNeXtBlock

BLOCKS = 4
INNER = 768
EPSILON = 1e-5
LARGEST_LOG = 7.0
"""Log magnitudes are clipped here."""
SCALE = ".scale"
"""Ends the names of the scales in the file."""


@dataclass(frozen=True)
class Spectra:
    """What the network gives, each (frames, bins): natural logarithms of magnitudes, and phases in radians."""

    harmonic: Tensor
    harmonic_phase: Tensor
    """Within half a turn to either side."""
    noise: Tensor
    free: Tensor
    """Spectrum of the part that follows neither the pulses nor the noise."""
    free_phase: Tensor

    def warped(self, scale: Tensor) -> Self:
        """With all frequencies times ``scale`` (frames,): a longer vocal tract below 1. Where the scale is not a
        number, neither are the spectra."""
        return type(self)(
            moved_magnitudes(self.harmonic, scale),
            moved_phases(self._filter, scale, centre=0),
            moved_magnitudes(self.noise, scale),
            moved_magnitudes(self.free, scale),
            moved_phases(self._free, scale, centre=WINDOW // 2),
        )

    def louder(self, level: Tensor) -> Self:
        """By ``level`` (frames,), natural logarithms of a gain."""
        by = level[:, None]
        return type(self)(self.harmonic + by, self.harmonic_phase, self.noise + by, self.free + by, self.free_phase)

    def shaped(self, scale: Tensor | None, level: Tensor | None) -> Self:
        """:meth:`warped` and :meth:`louder`, where there is something to change."""
        spectra = self if scale is None else self.warped(scale)
        return spectra if level is None else spectra.louder(level)

    def spectrum(self, pulses: Tensor, noise: Tensor) -> Tensor:
        """(bins, frames) complex64 of the speech, for the spectra of the pulses and of white noise (frames, bins)."""
        return (self._filter * pulses + _magnitude(self.noise) * noise + self._free).T

    @property
    def _filter(self) -> Tensor:
        """The filter of the pulses, complex."""
        return torch.polar(_magnitude(self.harmonic), self.harmonic_phase)

    @property
    def _free(self) -> Tensor:
        """The free part, complex."""
        return torch.polar(_magnitude(self.free), self.free_phase)


def _magnitude(logarithm: Tensor) -> Tensor:
    return logarithm.clamp(max=LARGEST_LOG).exp()


class SpectralNetwork(nn.Module):
    """Blocks and head."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = Modules(ConvNeXtBlock(HIDDEN, INNER, EPSILON) for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(HIDDEN, eps=EPSILON)
        self.head = nn.Linear(HIDDEN, 5 * BINS)

    def forward(self, hidden: Tensor) -> Spectra:
        """Hidden frames (B, 256, frames) to spectra of all items' frames, one after another."""
        for block in self.blocks:
            hidden = block(hidden)
        return self.out(hidden)

    def out(self, hidden: Tensor) -> Spectra:
        """Spectra from the output of the last block, (B, 256, frames)."""
        harmonic, turns, noise, free, phase = self.head(self.norm(hidden.mT.flatten(0, 1))).chunk(5, dim=1)
        return Spectra(harmonic, half_turns(turns), noise, free, phase)


def half_turns(raw: Tensor) -> Tensor:
    """Phases in radians from what the network gives for them."""
    return raw.tanh() * torch.pi


def dequantised(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a file in float32: those in whole numbers times their scales."""
    return {
        name: value * weights[name + SCALE] if name + SCALE in weights else value
        for name, value in in_float32(weights).items()
        if not name.endswith(SCALE)
    }
