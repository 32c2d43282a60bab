"""Sample-rate conversion by any ratio, with a Kaiser-windowed sinc in polyphase form, for all audio that is played,
measured or trained on. (Prompts are converted as in the official code, see :mod:`paretone.audio.mel`.) Torch-free.

Output sample ``m`` lies at input time ``m * down / up``. Every output sample is summed over the taps in the same order
at any block size, so that a stream converted piece by piece equals its one-shot conversion bit for bit (a matrix
product would not: its order of summation depends on the shape).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, gcd

import numpy as np

_HALF_WIDTH = 80
"""Zero crossings of the sinc on either side."""
_KAISER_BETA = 14.0
"""Side lobes about 136 dB down (Kaiser 1974: beta = 0.1102 (attenuation - 8.7)): more than the ear needs, but a log-mel
spectrogram shows leakage down to its floor of 1e-5, and a model trained on it would learn the leakage."""
_PASSBAND = 0.945
"""-6 dB point as a share of the lower Nyquist frequency. With this width and window the stop band begins at 1.0."""
_MANY = 500
"""Outputs per phase (of more than two) from which computing phase by phase is faster."""


def resample(samples: np.ndarray, source_rate: int, target_rate: int) -> np.ndarray:
    """Convert mono ``samples`` (n,) to ``target_rate``: (ceil(n * target / source),) float32, no delay."""
    converter = Resampler(source_rate, target_rate)
    return np.concatenate((converter.push(samples), converter.finish()))


class Resampler:
    """Converts a stream; the concatenated outputs equal :func:`resample` of the concatenated inputs exactly. Rates are
    whole hertz above 0, otherwise ``ValueError``."""

    def __init__(self, source_rate: int, target_rate: int) -> None:
        if source_rate < 1 or target_rate < 1:
            raise ValueError(f"sample rates must be positive, not {source_rate} and {target_rate}")
        common = gcd(source_rate, target_rate)
        self._up, self._down = target_rate // common, source_rate // common
        self._kernel = _polyphase_kernel(self._up, self._down)
        self._reach = self._kernel.shape[1] // 2
        # The first output needs `reach - 1` samples of silence before the start.
        self._pending = np.zeros(self._reach - 1 if self._reach else 0)
        self._pending_start = -len(self._pending)
        self._received = 0
        self._produced = 0

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Outputs (float32) that are computable after ``samples`` have arrived."""
        samples = np.asarray(samples)
        if samples.ndim != 1:
            raise ValueError(f"expected mono samples of shape (n,), not {samples.shape}")
        self._received += len(samples)
        if self._up == self._down:
            return samples.astype(np.float32)
        self._pending = np.concatenate((self._pending, samples.astype(np.float64)))
        # Output m reads inputs up to floor(m * down / up) + reach, which must be below `received`.
        return self._compute(max(0, ceil((self._received - self._reach) * self._up / self._down)))

    def finish(self) -> np.ndarray:
        """The last outputs, computed as if followed by silence."""
        if self._up == self._down:
            return np.zeros(0, np.float32)
        self._pending = np.concatenate((self._pending, np.zeros(self._reach + 1)))
        return self._compute(-(-self._received * self._up // self._down))

    def _compute(self, end: int) -> np.ndarray:
        first, count = self._produced, end - self._produced
        if count <= 0:
            return np.zeros(0, np.float32)
        few = self._up > 2 and count < _MANY * self._up
        output = self._by_taps(first, count) if few else self._by_phases(first, count)
        self._produced = end
        keep_from = end * self._down // self._up - self._reach + 1
        self._pending = self._pending[keep_from - self._pending_start :]
        self._pending_start = keep_from
        return output.astype(np.float32)

    def _by_phases(self, first: int, count: int) -> np.ndarray:
        """Outputs from ``first`` on, (count,) float64, phase by phase: fast for many per phase."""
        output = np.zeros(count)
        for offset in range(min(self._up, count)):
            # All outputs of one phase share their taps and read inputs `down` apart.
            base, phase = divmod((first + offset) * self._down, self._up)
            total = np.zeros(len(range(offset, count, self._up)))
            start = base - self._reach + 1 - self._pending_start
            span = (len(total) - 1) * self._down + 1
            for tap, weight in enumerate(self._kernel[phase]):
                total += weight * self._pending[start + tap : start + tap + span : self._down]
            output[offset :: self._up] = total
        return output

    def _by_taps(self, first: int, count: int) -> np.ndarray:
        """The same bits, all phases at once: fast for few outputs per phase."""
        base, phase = np.divmod(np.arange(first, first + count) * self._down, self._up)
        start = base - self._reach + 1 - self._pending_start
        output = np.zeros(count)
        for tap, weights in enumerate(self._kernel.T):
            output += weights[phase] * self._pending[start + tap]
        return output


@lru_cache(maxsize=8)
def _polyphase_kernel(up: int, down: int) -> np.ndarray:
    """Taps (up, 2 * reach): row ``p`` weighs inputs ``-reach + 1 .. reach`` for an output ``p / up`` past input 0."""
    if up == down:
        return np.zeros((1, 0))
    cutoff = _PASSBAND * min(1.0, up / down)
    reach = ceil(_HALF_WIDTH / min(1.0, up / down))
    distance = np.arange(1 - reach, reach + 1)[None, :] - np.arange(up)[:, None] / up
    window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1 - (distance / reach) ** 2, 0, None))) / np.i0(_KAISER_BETA)
    kernel = cutoff * np.sinc(cutoff * distance) * window
    # Unit gain for direct current in each phase: no ripple at the period of the phases.
    return kernel / kernel.sum(axis=1, keepdims=True)
