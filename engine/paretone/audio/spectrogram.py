"""Log-mel spectrogram of a sound: the Vocos front end (24 kHz, 1024-point FFT, hop 256, 100 HTK bands) in numpy.

The application shows it for all takes, even those whose trace has a mel: that one is the backbone's, before vocoder and
cross-fades, and would make takes of different families incomparable. Torch-free.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from paretone.audio.resampling import resample

RATE = 24000
FFT_LENGTH = 1024
HOP = 256
BANDS = 100
FLOOR = 1e-5
"""Floor of magnitudes before the logarithm: -100 dB."""


def log_mel(samples: np.ndarray, rate: int) -> np.ndarray:
    """Natural logarithm of the mel magnitudes of mono ``samples``: (frames, 100) float32, one frame per 256 / 24000 s.
    Frame ``i`` is centred on sample ``256 i`` of the signal at 24 kHz; the ends are reflected."""
    signal = np.asarray(samples, np.float32) if rate == RATE else resample(samples, rate, RATE)
    half = FFT_LENGTH // 2
    if not len(signal):
        return np.full((0, BANDS), np.log(FLOOR), np.float32)
    padded = np.pad(signal, half, mode="reflect" if len(signal) > half else "constant")
    frames = np.lib.stride_tricks.sliding_window_view(padded, FFT_LENGTH)[::HOP]
    # The periodic Hann window.
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT_LENGTH) / FFT_LENGTH)).astype(np.float32)
    magnitudes = np.abs(np.fft.rfft(frames * window, axis=1)).astype(np.float32)
    return np.log(np.maximum(magnitudes @ _filters().T, FLOOR))


def levels(samples: np.ndarray, rate: int, times: np.ndarray, bands: np.ndarray, window_seconds: float) -> np.ndarray:
    """Decibels (times, bands - 1) of mono ``samples`` around ``times`` (seconds), of the power between the edges
    ``bands`` (numbers as of :func:`band_frequency`); 0 dB is a full-scale sine within one."""
    count = max(16, round(window_seconds * rate))
    window = np.hanning(count).astype(np.float32)
    size = 1 << (2 * count - 1).bit_length()
    starts = np.round(times * rate).astype(int) - count // 2
    first, last = int(starts.min(initial=0)), int(starts.max(initial=0)) + count
    part = np.zeros(last - first, np.float32)
    there = samples[max(0, first) : max(0, last)]
    part[max(0, -first) : max(0, -first) + len(there)] = there
    frames = np.lib.stride_tricks.sliding_window_view(part, count)[starts - first] * window
    spectra = np.fft.rfft(frames, size, axis=1)
    powers = (spectra.real**2 + spectra.imag**2) * (4 / window.sum() ** 2)
    sums = np.concatenate([np.zeros((len(powers), 1)), np.cumsum(powers, axis=1)], axis=1)
    # Between the sums of whole bins, a band of any width has its share of the power.
    edges = np.clip(_from_mel((bands + 1) * _to_mel(RATE / 2) / (BANDS + 1)) / rate * size + 0.5, 0, sums.shape[1] - 1)
    whole = np.minimum(edges.astype(int), sums.shape[1] - 2)
    share = edges - whole
    below = sums[:, whole] * (1 - share) + sums[:, whole + 1] * share
    found = np.diff(below, axis=1) / np.maximum(1.0, np.diff(edges))
    return (10 * np.log10(np.maximum(found, 1e-12))).astype(np.float32)


def drawn_or_heard(drawn: np.ndarray | None, samples: np.ndarray, rate: int) -> np.ndarray:
    """Spectrogram for comparing a take with its baseline: the model's own, or that of the audio if there is none."""
    return log_mel(samples, rate) if drawn is None else drawn


def band_frequency(band: float) -> float:
    """Centre frequency in hertz of a band (0 .. 99; fractions lie between)."""
    return float(_from_mel(np.asarray((band + 1) * _to_mel(RATE / 2) / (BANDS + 1))))


def frequency_band(frequency: float) -> float:
    return float(_to_mel(frequency) * (BANDS + 1) / _to_mel(RATE / 2) - 1)


def _to_mel(frequency: float) -> float:
    return 2595.0 * np.log10(1.0 + frequency / 700.0)


def _from_mel(mel: np.ndarray) -> np.ndarray:
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


@lru_cache(maxsize=1)
def _filters() -> np.ndarray:
    """Triangles of height one on the HTK mel scale, 0 Hz to 12 kHz: (100, 513) float32."""
    bins = np.linspace(0, RATE / 2, FFT_LENGTH // 2 + 1)
    corners = _from_mel(np.linspace(0, _to_mel(RATE / 2), BANDS + 2))
    rising = (bins[None, :] - corners[:-2, None]) / np.diff(corners)[:-1, None]
    falling = (corners[2:, None] - bins[None, :]) / np.diff(corners)[1:, None]
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
