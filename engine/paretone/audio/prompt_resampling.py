"""Resampling of prompts by a windowed sinc, equal to torchaudio's default, which F5-TTS uses: six zero crossings, a
Hann window, a cut-off at 99 % of the lower half rate. Short as it is, it lets some aliasing through; what is measured
or played is converted by ``resampling``."""

from __future__ import annotations

import functools
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import AudioError

ZERO_CROSSINGS = 6
ROLL_OFF = 0.99
LARGEST_KERNEL = 1 << 25
"""Taps of all phases together. Rates with hardly a common factor (44,101 and 24,000 Hz) would need gigabytes."""


def resample(samples: Tensor, rate: int, new_rate: int) -> Tensor:
    """Float ``samples`` (n,) or (B, n) at ``rate`` Hz to ceil(n · new_rate / rate) samples at ``new_rate`` Hz.

    Raises :class:`AudioError` for rates that are not positive or whose ratio is too odd.
    """
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
@torch.inference_mode(False)  # What is kept must also serve training.
def _kernel(before: int, after: int) -> tuple[Tensor, int]:
    """One low-pass filter for each output phase, (after, 1, taps) float32, and how far they reach to either side."""
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
