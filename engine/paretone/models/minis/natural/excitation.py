"""What the spectra of natural speech shape: pulses at the pitch, and noise.

The pulses hold every harmonic below 11 kHz at one amplitude, and are silent without voice. Pitch is interpolated
between the middles of frames; phases are summed in float64. Noise is drawn in the frequency domain.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from paretone.models.minis.natural.layout import BINS, HOP, LOWEST_VOICED, SAMPLE_RATE, WINDOW

HIGHEST_HARMONIC = 11_000.0
"""Hertz."""
SMALLEST_SINE = 2e-3
"""Smallest value of twice the sine of half the phase; closer to a pulse's peak, the limit is used."""
_HALF = WINDOW // 2


class Noise(Protocol):
    """Where the noise comes from."""

    def draw(self, frames: int) -> Tensor:
        """(frames, bins) complex64 of the next frames, standard normal in both parts."""


class SeededNoise:
    """Noise that depends on a seed and on how many frames precede, not on how they are grouped, nor on the device."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def draw(self, frames: int) -> Tensor:
        """As :class:`Noise` says."""
        drawn = self._generator.standard_normal((frames, BINS, 2), dtype=np.float32)
        return torch.view_as_complex(torch.from_numpy(drawn))


class GivenNoise:
    """Noise that is there already, (frames, bins) complex64."""

    def __init__(self, noise: Tensor) -> None:
        self._rest = noise

    def draw(self, frames: int) -> Tensor:
        """As :class:`Noise` says."""
        drawn, self._rest = self._rest[:frames], self._rest[frames:]
        return drawn


class PulseTrain:
    """Pitch to pulses; samples are given out as soon as the frame that their pitch leads to is known."""

    def __init__(self) -> None:
        self._known = torch.zeros(0)
        """Pitch of the frame before the next sample, if there is one, and of those after it."""
        self._given = 0
        self._turns = torch.zeros(1, dtype=torch.float64)
        """Sum of the pitch of all samples so far."""
        self._first = 0
        """Number of the first known frame."""

    def push(self, pitch: Tensor) -> Tensor:
        """Pitch (n,) in hertz of the next frames, 0 without voice, to samples (m,)."""
        self._known = torch.cat([self._known, pitch.float().cpu()])
        frames = self._first + len(self._known)
        return self._until(frames * HOP - HOP // 2 if frames else 0)

    def finish(self) -> Tensor:
        """The last half frame, (m,)."""
        return self._until((self._first + len(self._known)) * HOP)

    def _until(self, end: int) -> Tensor:
        samples = torch.arange(self._given, max(end, self._given))
        if not len(samples):
            return torch.zeros(0)
        middle = samples - HOP // 2
        left = torch.div(middle, HOP, rounding_mode="floor")
        weight = ((middle - left * HOP).float() + 0.5) / HOP
        last = len(self._known) - 1
        early, late = (self._known[(left + step - self._first).clamp(0, last)] for step in (0, 1))
        pulses = self._pulses(early * (1 - weight) + late * weight)
        keep_from = max(int((end - HOP // 2) // HOP), self._first)
        self._known, self._first, self._given = self._known[keep_from - self._first :], keep_from, end
        return pulses

    def _pulses(self, pitch: Tensor) -> Tensor:
        """Σ cos(h·t) over the harmonics h = 1 … H, which is sin((H + ½)t) / (2 sin(t/2)) − ½."""
        voiced = pitch > LOWEST_VOICED
        pitch = pitch.clamp(min=LOWEST_VOICED)
        sums = torch.cat([self._turns, pitch.double()]).cumsum(0)
        self._turns = sums[-1:].clone()
        phase = (sums[1:] / SAMPLE_RATE % 1 * (2 * math.pi)).float()
        order = (HIGHEST_HARMONIC / pitch).floor() + 0.5
        sine = 2 * (phase * 0.5).sin()
        at_peak = sine.abs() <= SMALLEST_SINE
        value = torch.where(at_peak, order, (order * phase).sin() / torch.where(at_peak, 1.0, sine))
        return torch.where(voiced, value - 0.5, 0.0)


class PulseSpectra:
    """The short-time spectra of samples that come in pieces, reflected at both ends; frame k is centred on sample
    k · hop, and there are as many frames as whole hops."""

    def __init__(self) -> None:
        window = torch.hann_window(WINDOW)
        self._window = window / (WINDOW / 4)
        """A cosine of amplitude one then peaks at one."""
        self._held = torch.zeros(0)
        self._begun = False

    def push(self, samples: Tensor) -> Tensor:
        """(n,) to the spectra that are final now, (frames, bins) complex64."""
        self._held = torch.cat([self._held, samples])
        if not self._begun:
            if len(self._held) <= _HALF:
                return self._spectra(0)
            self._held = torch.cat([self._held[1 : _HALF + 1].flip(0), self._held])
            self._begun = True
        return self._spectra(max((len(self._held) - WINDOW) // HOP + 1, 0))

    def finish(self) -> Tensor:
        """The rest."""
        if not self._begun:
            whole, frames = self._held, len(self._held) // HOP
            self._held = whole[_reflected(len(whole))] if frames else whole
        else:
            frames = (len(self._held) - _HALF) // HOP
            self._held = torch.cat([self._held, self._held[-_HALF - 1 : -1].flip(0)])
        return self._spectra(frames)

    def _spectra(self, frames: int) -> Tensor:
        if not frames:
            return torch.zeros(0, BINS, dtype=torch.complex64)
        windows = self._held.unfold(0, WINDOW, HOP)[:frames] * self._window
        self._held = self._held[frames * HOP :]
        return torch.fft.rfft(windows)


def _reflected(length: int) -> Tensor:
    """Places of ``length`` samples with half a window on either side, mirrored as often as it takes."""
    period = max(2 * (length - 1), 1)
    places = torch.arange(-_HALF, length + _HALF) % period
    return torch.minimum(places, period - places)
