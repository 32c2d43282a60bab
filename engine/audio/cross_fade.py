"""How pieces of audio are joined as they come. Torch-free."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Fade = Callable[[int], tuple[np.ndarray, np.ndarray]]
"""Gains over so many samples of what ends and of what begins."""


def linear_fade(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """As F5-TTS joins pieces."""
    return np.linspace(1, 0, samples), np.linspace(0, 1, samples)


class CrossFader:
    """Joins pieces of audio as they come, each fading into the next over ``fade`` samples.

    What has been returned is final: the end of the last piece is held back until the next one has come. All that is
    returned, put together, equals the official cross-fade of all pieces at once (computed in float64, as there).
    """

    def __init__(self, fade: int, shape: Fade = linear_fade) -> None:
        self.fade = max(fade, 0)
        self._shape = shape
        self._held = np.zeros(0, np.float32)

    @classmethod
    def of_seconds(cls, seconds: float = 0.15, sample_rate: int = 24000) -> CrossFader:
        """A fade of so many seconds; the official default is 0.15."""
        return cls(int(seconds * sample_rate))

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Take the next piece, (n,) float32, and return the samples that are final now, (m,) float32."""
        overlap = min(self.fade, len(self._held), len(samples))
        if overlap:
            ending, beginning = self._shape(overlap)
            mixed = self._held[-overlap:] * ending + samples[:overlap] * beginning
            joined = np.concatenate([self._held[:-overlap], mixed, samples[overlap:]])
        else:
            joined = np.concatenate([self._held, samples])
        final = max(len(joined) - self.fade, 0)
        self._held = joined[final:]
        return joined[:final].astype(np.float32)

    def finish(self) -> np.ndarray:
        """The samples that were held back, (m,) float32; the fader is empty afterwards."""
        rest, self._held = self._held.astype(np.float32), np.zeros(0, np.float32)
        return rest
