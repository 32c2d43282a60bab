"""Spectra with all frequencies times a scale: another vocal tract.

Magnitudes are interpolated between bins. Phases cannot be: from one bin to the next they change by up to half a turn,
and anything between two of them would be arbitrary (DistillMOS of the teacher's voice drops from 4.4 to 3.8 at a scale
of 1.01). They are taken from the same sound in time, played faster by the scale.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paretone.models.minis.natural.layout import BINS, WINDOW

_OVERSAMPLING = 2
"""Points per sample between which the sound in time is interpolated linearly; more do not sound better."""


def moved_magnitudes(logarithms: Tensor, scale: Tensor) -> Tensor:
    """Log magnitudes (frames, bins), their frequencies times ``scale`` (frames,)."""
    source = (torch.arange(BINS, device=scale.device) / scale[:, None]).clamp(0, BINS - 1)
    return _between(logarithms, source)


def moved_phases(spectrum: Tensor, scale: Tensor, centre: int) -> Tensor:
    """Phases (frames, bins) in radians of a complex ``spectrum`` (frames, bins), its frequencies times ``scale``
    (frames,).

    ``centre``: the sample of the window that stays in place, 0 of a filter and the window's middle of a sound.
    """
    size = WINDOW * _OVERSAMPLING
    half = WINDOW // 2
    # Zeros above the highest bin: the same sound at more points.
    sound = torch.fft.irfft(spectrum, size).roll((half - centre) * _OVERSAMPLING, 1)
    steps = torch.arange(-half, half, device=scale.device)
    source = (steps * scale[:, None] + half) * _OVERSAMPLING
    outside = (source < 0) | (source > size - 1)
    faster = _between(sound, source.clamp(0, size - 1)).masked_fill(outside, 0.0)
    return torch.fft.rfft(faster.roll(centre - half, 1)).angle()


def _between(values: Tensor, places: Tensor) -> Tensor:
    """``values`` (frames, n) at fractional ``places`` (frames, m); where a place is not a number, neither is the
    result."""
    low = places.nan_to_num().long()
    high = (low + 1).clamp(max=values.shape[1] - 1)
    return torch.lerp(values.gather(1, low), values.gather(1, high), places - low)
