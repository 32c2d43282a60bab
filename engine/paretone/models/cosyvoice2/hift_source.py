"""The excitation of the HiFT vocoder: harmonics of the pitch in voiced frames, noise in the others.

Official: ``SourceModuleHnNSF`` and ``SineGen2`` of ``cosyvoice/hifigan/generator.py``, after neural source-filter
models (Wang et al., arXiv 1904.12088). Upstream's random start phase is left out: it is added to a sample that the
interpolation never reads. Phases are sums over the whole request, in float64; in float32, as upstream has them, their
rounding after some seconds is louder than that of all other layers. Upstream's rounding is an option. The source is
computed on the CPU, so that it is the same on every device.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn

from paretone.models.cosyvoice2.acoustic_config import HiftConfig
from paretone.models.cosyvoice2.incremental import Progress

AMPLITUDE = 0.1
VOICED_NOISE = 0.003
UNVOICED_NOISE = AMPLITUDE / 3
LOWEST_VOICED = 10.0
"""Hertz; below, a frame counts as unvoiced."""


def phase_precision(config: HiftConfig) -> torch.dtype:
    """Precision of pitch and phases."""
    return torch.float32 if config.float32_phases else torch.float64


class Noise(Protocol):
    """Random numbers of the source."""

    def draw(self, frames: int) -> Tensor:
        """Standard normal noise for the next frames, (1, frames · samples per frame, harmonics + 1)."""


class SeededNoise:
    """Noise that depends on a seed and on how many frames precede, not on how they are grouped, nor on the device."""

    def __init__(self, seed: int, config: HiftConfig) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._shape = (config.samples_per_frame, config.harmonics + 1)

    def draw(self, frames: int) -> Tensor:
        """As :class:`Noise` says."""
        drawn = [torch.randn(self._shape, generator=self._generator) for _ in range(frames)]
        return torch.cat([torch.empty(0, self._shape[1]), *drawn])[None]


class HarmonicSource(nn.Module):
    """Pitch to excitation; a frame is given out when the next one is known, as its phases lead there."""

    def __init__(self, config: HiftConfig) -> None:
        super().__init__()
        self.samples, self.sample_rate = config.samples_per_frame, config.sample_rate
        self.partials = config.harmonics + 1
        self.precision = phase_precision(config)
        self.l_linear = nn.Linear(self.partials, 1)

    def forward(self, pitch: Tensor, noise: Noise, progress: Progress) -> Tensor:
        """``pitch`` (1, n) in hertz of the next frames to samples (1, 1, m)."""
        before, pitch = progress.take(self), pitch.cpu()
        cycles = (pitch[..., None].to(self.precision) * torch.arange(1, self.partials + 1) / self.sample_rate) % 1
        if before is None:
            first, total = 0, cycles.new_zeros(1, 1, self.partials, dtype=torch.float64)
            phases = cycles[:, :0]
        else:
            first, total, phases, pending = before
            pitch = torch.cat([pending, pitch], dim=1)
        sums = torch.cat([total, cycles.double()], dim=1).cumsum(dim=1)
        phases = torch.cat([phases, sums[:, 1:].to(self.precision) * 2 * math.pi * self.samples], dim=1)
        count = pitch.shape[1] if progress.last else max(pitch.shape[1] - 1, 0)
        given_out = first + count
        # The frame before the next one to be given out is still interpolated from.
        earlier = min(given_out, 1)
        kept = phases.shape[1] - (pitch.shape[1] - count) - earlier
        progress.keep(self, (given_out, sums[:, -1:], phases[:, kept:].clone(), pitch[:, count:].clone()))
        sines = AMPLITUDE * self._interpolated(phases, first, count).sin().float()
        voiced = (pitch[:, :count, None] > LOWEST_VOICED).repeat_interleave(self.samples, dim=1)
        level = torch.where(voiced, VOICED_NOISE, UNVOICED_NOISE)
        excitation = torch.where(voiced, sines, 0.0) + level * noise.draw(count)
        return self.l_linear(excitation.to(self.l_linear.weight)).tanh().mT

    def _interpolated(self, phases: Tensor, first: int, count: int) -> Tensor:
        """Phases of the samples of ``count`` frames, (1, count · samples, partials), linearly between the middles of
        frames. ``phases`` (1, n, partials) begin with the frame before frame ``first``, if there is one."""
        begin = max(first - 1, 0)
        index = torch.arange(first * self.samples, (first + count) * self.samples)
        # In float32, these are the roundings of PyTorch's interpolation on a CPU, with its fused multiplications.
        reciprocal = torch.tensor(1 / self.samples, dtype=self.precision).item()
        place = ((index.double() + 0.5) * reciprocal - 0.5).to(self.precision).clamp(min=0)
        left = place.long()
        weight = (place - left)[:, None]
        left, end = left - begin, phases.shape[1] - 1
        early, late = phases[:, left.clamp(max=end)], phases[:, (left + 1).clamp(max=end)]
        return ((1 - weight).double() * early.double() + (weight * late).double()).to(self.precision)
