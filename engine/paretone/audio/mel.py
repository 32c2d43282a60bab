"""Model inputs from a recording: log-mel frames, and prompts at the model's sample rate.

Vocos and BigVGAN each decode the frames of their own front end. Both front ends take 24 kHz audio to natural-logarithm
mel magnitudes, floored at 1e-5; they differ in padding, mel scale and magnitude. They are those of F5-TTS
(``model/modules.py`` of the official code).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import AudioError

VOCOS = "vocos"
BIGVGAN = "bigvgan"
STYLES = (VOCOS, BIGVGAN)

FLOOR = 1e-5
"""Floor of magnitudes before the logarithm."""


@dataclass(frozen=True)
class MelFrontEnd:
    """From audio to log-mel frames. ``vocos``: centred frames (reflected by half a window), magnitudes, 100 triangles
    on the HTK mel scale. ``bigvgan``: frames padded by (window - hop) / 2, root of power + 1e-9, triangles of equal
    area on Slaney's scale."""

    style: str = VOCOS
    sample_rate: int = 24000
    window: int = 1024
    """Samples per window, a periodic Hann window; also the length of the transform."""
    hop: int = 256
    bands: int = 100
    highest: float | None = None
    """Upper end in hertz of the last triangle, by default half the rate; ``bigvgan`` only."""

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise AudioError(f"There is no mel front end {self.style!r}; known: {', '.join(STYLES)}.")

    def frames(self, samples: int) -> int:
        return samples // self.hop + (self.style == VOCOS)

    def filterbank(self, device: torch.device | str = "cpu") -> Tensor:
        """(window // 2 + 1, bands) float32 triangles, cached."""
        if self.style == VOCOS:
            return htk_filterbank(self.sample_rate, self.window, self.bands, str(device))
        return slaney_filterbank(self.sample_rate, self.window, self.bands, str(device), self.highest)

    def __call__(self, samples: Tensor) -> Tensor:
        """Log-mel frames of float ``samples`` (n,) or (B, n), as (1, frames, bands) or (B, frames, bands). Raises
        :class:`AudioError` for too few samples to reflect at the ends."""
        batch = samples.unsqueeze(0) if samples.dim() == 1 else samples
        margin = self.window // 2 if self.style == VOCOS else (self.window - self.hop) // 2
        if batch.shape[-1] <= margin:
            raise AudioError(
                f"The recording has {batch.shape[-1]} samples, but a spectrogram needs more than {margin}; "
                "use a longer recording."
            )
        padded = F.pad(batch.unsqueeze(1), (margin, margin), mode="reflect").squeeze(1)
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
@torch.inference_mode(False)  # Cached tensors must also serve training.
def _hann(length: int, device: str) -> Tensor:
    return torch.hann_window(length, device=device)


@functools.lru_cache(maxsize=8)
@torch.inference_mode(False)  # Cached tensors must also serve training.
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
@torch.inference_mode(False)  # Cached tensors must also serve training.
def slaney_filterbank(
    sample_rate: float, window: int, bands: int, device: str = "cpu", highest: float | None = None
) -> Tensor:
    """(window // 2 + 1, bands) triangles of area one (over Hz) from 0 Hz to ``highest`` (default: half the rate),
    equally spaced on Slaney's scale, linear below 1 kHz, logarithmic above: librosa's default."""
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


def whisper_mel(samples: Tensor, bands: int) -> Tensor:
    """Whisper's log-mel frames of (n,) at 16 kHz, (bands, n // 160), without its padding to 30 s: decimal logarithms of
    powers, of which eight decades below the highest remain."""
    window = torch.hann_window(400, device=samples.device)
    # The last frame lies after the end.
    spectrum = torch.stft(samples.float(), 400, 160, window=window, return_complex=True)[:, :-1]
    powers = slaney_filterbank(16000, 400, bands, str(samples.device)).T @ spectrum.abs().square()
    levels = powers.clamp(min=1e-10).log10()
    return (levels.clamp(min=levels.max() - 8.0) + 4) / 4


# --- Prompts ----------------------------------------------------------------------------------------------------------
# Windowed-sinc resampling equal to torchaudio's default, which F5-TTS uses: six zero crossings, a Hann window, a
# cut-off at 99 % of the lower half rate. This short filter lets some aliasing through; audio for measurement or
# playback is converted by paretone.audio.resampling.
ZERO_CROSSINGS = 6
ROLL_OFF = 0.99
LARGEST_KERNEL = 1 << 25
"""Maximum taps over all phases. Rates with hardly a common factor (44,101 and 24,000 Hz) would need gigabytes."""


def resample_prompt(samples: Tensor, rate: int, new_rate: int) -> Tensor:
    """Resample float ``samples`` (n,) or (B, n) from ``rate`` Hz to ``new_rate`` Hz: ceil(n · new_rate / rate) samples.
    Raises :class:`AudioError` for rates that are not positive or have too odd a ratio."""
    if rate <= 0 or new_rate <= 0:
        raise AudioError(f"A sample rate must be positive, not {min(rate, new_rate)} Hz.")
    if rate == new_rate:
        return samples
    common = math.gcd(rate, new_rate)
    before, after = rate // common, new_rate // common
    kernel, reach = _kernel(before, after)
    batch = samples.reshape(-1, samples.shape[-1])
    padded = F.pad(batch, (reach, reach + before))
    phases = F.conv1d(padded[:, None], kernel.to(samples.device, samples.dtype), stride=before)
    resampled = phases.transpose(1, 2).reshape(len(batch), -1)
    # The official length is rounded in float32; a double would differ by one sample now and then.
    length = int(torch.ceil(torch.as_tensor(after * batch.shape[-1] / before)))
    return resampled[:, :length].reshape(*samples.shape[:-1], -1)


@functools.lru_cache(maxsize=8)
@torch.inference_mode(False)  # Cached tensors must also serve training.
def _kernel(before: int, after: int) -> tuple[Tensor, int]:
    """One low-pass filter per output phase, (after, 1, taps) float32, and their reach to either side."""
    cut_off = min(before, after) * ROLL_OFF
    reach = math.ceil(ZERO_CROSSINGS * before / cut_off)
    if after * (2 * reach + before) > LARGEST_KERNEL:
        raise AudioError(
            f"The sample rates {before} : {after} have too odd a ratio; convert the recording to 24, 44.1 or 48 kHz."
        )
    taps = torch.arange(-reach, reach + before, dtype=torch.float64)[None, None] / before
    # The phases are divided in float32, as the official kernel is.
    phases = torch.arange(0, -after, -1)[:, None, None] / after
    crossings = ((phases + taps) * cut_off).clamp(-ZERO_CROSSINGS, ZERO_CROSSINGS)
    window = torch.cos(crossings * math.pi / ZERO_CROSSINGS / 2) ** 2
    angles = crossings * math.pi
    sinc = torch.where(angles == 0, 1.0, angles.sin() / angles)
    return (sinc * window * (cut_off / before)).float(), reach
