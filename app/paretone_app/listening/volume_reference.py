"""Sounds to set the volume by before a test: noise and a tone, as loud as everything that will be heard.

Both repeat without a seam: the noise is made of whole periods, the tone of whole cycles. Free of Qt.
"""

from __future__ import annotations

import numpy as np

from paretone.measure.loudness import integrated_loudness

SECONDS = 4
TONE_HERTZ = 1000
LOWEST_HERTZ, HIGHEST_HERTZ = 100.0, 8000.0
"""The noise has as much power in every octave between these (pink), and none elsewhere: about where speech is."""


def noise(rate: int) -> np.ndarray:
    """Pink noise at ``rate`` hertz that repeats seamlessly, (n,) float32; the same whenever it is made."""
    count = SECONDS * rate
    frequencies = np.fft.rfftfreq(count, 1 / rate)
    heard = (frequencies >= LOWEST_HERTZ) & (frequencies <= min(HIGHEST_HERTZ, rate / 2))
    sizes = np.zeros(len(frequencies))
    sizes[heard] = frequencies[heard] ** -0.5
    phases = np.random.default_rng(1534).uniform(0, 2 * np.pi, len(frequencies))
    samples = np.fft.irfft(sizes * np.exp(1j * phases), count)
    return (0.1 * samples / samples.std()).astype(np.float32)


def tone(rate: int) -> np.ndarray:
    """A sine of 1 kHz at ``rate`` hertz that repeats seamlessly, (n,) float32."""
    return (0.1 * np.sin(2 * np.pi * TONE_HERTZ * np.arange(SECONDS * rate) / rate)).astype(np.float32)


def gain(samples: np.ndarray, rate: int, target: float) -> float:
    """The linear gain that brings ``samples`` to ``target`` LUFS (ITU-R BS.1770)."""
    return float(10 ** ((target - integrated_loudness(samples, rate).lufs) / 20))
