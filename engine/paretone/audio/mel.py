"""The two log-mel front ends of flow-matching models: the one that Vocos decodes and the one that BigVGAN decodes.

Both take 24 kHz audio to natural-logarithm mel magnitudes, floored at 1e-5; they differ in padding, in the mel scale
and in how the magnitude is taken. They are the front ends of F5-TTS (``model/modules.py`` of the official code).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from paretone.errors import AudioError

VOCOS = "vocos"
BIGVGAN = "bigvgan"
STYLES = (VOCOS, BIGVGAN)

FLOOR = 1e-5
"""Magnitudes below this are raised to it before the logarithm."""


@dataclass(frozen=True)
class MelFrontEnd:
    """Audio to log-mel frames.

    ``vocos``: centred frames (reflected by half a window), magnitudes, 100 triangles on the HTK mel scale.
    ``bigvgan``: frames padded by (window - hop) / 2, root of power + 1e-9, triangles of equal area on Slaney's scale.
    """

    style: str = VOCOS
    sample_rate: int = 24000
    window: int = 1024
    """Samples of one window, a periodic Hann window; also the length of the transform."""
    hop: int = 256
    bands: int = 100
    highest: float | None = None
    """Hertz where the last triangle ends, half the rate if not given; ``bigvgan`` only."""

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise AudioError(f"There is no mel front end {self.style!r}; known: {', '.join(STYLES)}.")

    def frames(self, samples: int) -> int:
        """Number of frames for a number of samples."""
        return samples // self.hop + (self.style == VOCOS)

    def filterbank(self, device: torch.device | str = "cpu") -> Tensor:
        """(window // 2 + 1, bands) float32 triangles, cached."""
        if self.style == VOCOS:
            return htk_filterbank(self.sample_rate, self.window, self.bands, str(device))
        return slaney_filterbank(self.sample_rate, self.window, self.bands, str(device), self.highest)

    def __call__(self, samples: Tensor) -> Tensor:
        """Log-mel frames of float ``samples`` (n,) or (B, n), as (1, frames, bands) or (B, frames, bands).

        Raises :class:`AudioError` when there are too few samples to reflect at the ends.
        """
        batch = samples.unsqueeze(0) if samples.dim() == 1 else samples
        margin = self.window // 2 if self.style == VOCOS else (self.window - self.hop) // 2
        if batch.shape[-1] <= margin:
            raise AudioError(
                f"The recording has {batch.shape[-1]} samples, but a spectrogram needs more than {margin}; "
                "use a longer recording."
            )
        padded = functional.pad(batch.unsqueeze(1), (margin, margin), mode="reflect").squeeze(1)
        spectrum = torch.stft(
            padded,
            self.window,
            self.hop,
            window=_hann(self.window, str(batch.device)).to(batch.dtype),
            center=False,
            onesided=True,
            return_complex=True,
        )
        if self.style == VOCOS:
            magnitudes = spectrum.abs()
        else:
            magnitudes = torch.sqrt(torch.view_as_real(spectrum).square().sum(-1) + 1e-9)
        mel = magnitudes.transpose(1, 2) @ self.filterbank(batch.device).to(batch.dtype)
        return mel.clamp(min=FLOOR).log()


@functools.lru_cache(maxsize=8)
@torch.inference_mode(False)  # What is kept must also serve training.
def _hann(length: int, device: str) -> Tensor:
    return torch.hann_window(length, device=device)


@functools.lru_cache(maxsize=8)
@torch.inference_mode(False)  # What is kept must also serve training.
def htk_filterbank(sample_rate: int, window: int, bands: int, device: str = "cpu") -> Tensor:
    """(window // 2 + 1, bands) triangles of height one from 0 Hz to half the rate, equally spaced on the HTK mel scale,
    2595 · log10(1 + f / 700). In float32 throughout, as torchaudio's default does."""
    frequencies = torch.linspace(0, sample_rate // 2, window // 2 + 1)
    highest = 2595.0 * math.log10(1.0 + sample_rate / 2 / 700.0)
    corners = 700.0 * (10.0 ** (torch.linspace(0.0, highest, bands + 2) / 2595.0) - 1.0)
    widths = corners[1:] - corners[:-1]
    offsets = corners.unsqueeze(0) - frequencies.unsqueeze(1)
    rising, falling = -offsets[:, :-2] / widths[:-1], offsets[:, 2:] / widths[1:]
    return torch.minimum(rising, falling).clamp(min=0.0).to(device)


@functools.lru_cache(maxsize=8)
@torch.inference_mode(False)  # What is kept must also serve training.
def slaney_filterbank(
    sample_rate: int, window: int, bands: int, device: str = "cpu", highest: float | None = None
) -> Tensor:
    """(window // 2 + 1, bands) triangles of area one (over Hz) from 0 Hz to ``highest`` (half the rate if not given),
    equally spaced on the scale of Slaney's Auditory Toolbox: linear below 1 kHz, logarithmic above. librosa's default
    filters."""
    frequencies = torch.linspace(0, sample_rate / 2, window // 2 + 1, dtype=torch.float64)
    linear_step, break_frequency, log_step = 200.0 / 3, 1000.0, math.log(6.4) / 27.0
    break_mel = break_frequency / linear_step
    top = highest or sample_rate / 2
    highest_mel = break_mel + math.log(top / break_frequency) / log_step if top > break_frequency else top / linear_step
    mels = torch.linspace(0.0, highest_mel, bands + 2, dtype=torch.float64)
    corners = torch.where(
        mels < break_mel, mels * linear_step, break_frequency * torch.exp(log_step * (mels - break_mel))
    )
    widths = corners[1:] - corners[:-1]
    offsets = corners.unsqueeze(0) - frequencies.unsqueeze(1)
    rising, falling = -offsets[:, :-2] / widths[:-1], offsets[:, 2:] / widths[1:]
    triangles = torch.minimum(rising, falling).clamp(min=0.0)
    return (triangles * (2.0 / (corners[2:] - corners[:-2]))).float().to(device)
