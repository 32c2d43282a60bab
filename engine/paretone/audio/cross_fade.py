"""Joining pieces of audio as they arrive. Torch-free."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Fade = Callable[[int], tuple[np.ndarray, np.ndarray]]
"""Gains of the ending and the beginning sound over a number of samples."""


def linear_fade(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """F5-TTS's fade between pieces."""
    return np.linspace(1, 0, samples), np.linspace(0, 1, samples)


RELEASE, DECAY = 480, 960
"""Samples (20 and 40 ms at 24 kHz) for which a passage's last sound is kept, and then fades."""


class CrossFader:
    """Joins pieces of audio as they come, each fading into the next over ``fade`` samples. Returned samples are final:
    the end of the last piece is held back until the next one has come. All returned samples together equal the official
    cross-fade of all pieces at once (computed in float64, as there)."""

    def __init__(self, fade: int, shape: Fade = linear_fade) -> None:
        self.fade = max(fade, 0)
        self._shape = shape
        self._held = np.zeros(0, np.float32)

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Add the next piece, (n,) float32; returns the newly final samples, (m,) float32."""
        overlap = min(self.fade, len(self._held), len(samples))
        if overlap:
            ending, beginning = self._shape(overlap)
            mixed = self._held[-overlap:] * ending + samples[:overlap] * beginning
            joined = np.concatenate([self._held[:-overlap], mixed, samples[overlap:]])
        else:
            joined = np.concatenate([self._held, samples])
        return self._final(joined)

    def extend(self, samples: np.ndarray) -> np.ndarray:
        """Add more of the last piece, without a fade."""
        return self._final(np.concatenate([self._held, samples]))

    @property
    def held(self) -> int:
        return len(self._held)

    def _final(self, joined: np.ndarray) -> np.ndarray:
        """Everything except the end, which is held back."""
        final = max(len(joined) - self.fade, 0)
        self._held = joined[final:]
        return joined[:final].astype(np.float32)

    def finish(self) -> np.ndarray:
        """The samples held back, (m,) float32; the fader is empty afterwards."""
        rest, self._held = self._held.astype(np.float32), np.zeros(0, np.float32)
        return rest


class PassageJoiner:
    """Joins passages that come in pieces: within a passage pieces are concatenated, and passages fade into each other.
    A passage with a known end is silenced after it."""

    lead = 0
    """Samples by which the last passage begins later than :meth:`begin` returned."""

    def __init__(self, fader: CrossFader, passages: int | None = None, ends: Sequence[int] | None = None) -> None:
        """``passages``: number of passages, if known; the last one's end is then not held back. ``ends``: sample at
        which each passage's last sound ends."""
        self._fader, self._left = fader, passages
        self._ends = None if ends is None else iter(ends)
        self._end: int | None = None
        """Remaining samples of the passage until its last sound ends."""
        self._beginning: list[np.ndarray] | None = None
        """Beginning of a passage, still too short for a cross-fade."""
        self._final = np.zeros(0, np.float32)
        """Final samples not yet returned."""
        self._returned = 0

    def begin(self) -> int:
        """Begin another passage; returns its first sample in the whole."""
        self._settle()
        self._beginning = []
        if self._left is not None:
            self._left -= 1
        if self._ends is not None:
            self._end = next(self._ends)
        held = self._fader.held
        return self._returned + len(self._final) + held - min(self._fader.fade, held)

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Add the next piece of the passage, (n,) float32; returns the newly final samples, (m,) float32."""
        if self._end is not None:
            samples, self._end = faded_after(samples, self._end), self._end - len(samples)
        if self._beginning is None:
            self._add(self._fader.extend(samples))
        else:
            self._beginning.append(samples)
            if sum(map(len, self._beginning)) >= min(self._fader.fade, self._fader.held):
                self._settle()
        if self._left == 0 and self._beginning is None:
            self._add(self._fader.finish())
        return self._take()

    def finish(self) -> np.ndarray:
        """End the last passage; returns the rest, (m,) float32."""
        self._settle()
        self._add(self._fader.finish())
        return self._take()

    def _settle(self) -> None:
        """Fade into the passage's beginning, of any length."""
        if self._beginning:
            self._add(self._fader.push(np.concatenate(self._beginning)))
        self._beginning = None

    def _add(self, samples: np.ndarray) -> None:
        self._final = np.concatenate([self._final, samples])

    def _take(self) -> np.ndarray:
        taken, self._final = self._final, np.zeros(0, np.float32)
        self._returned += len(taken)
        return taken


def faded_after(samples: np.ndarray, end: int) -> np.ndarray:
    """``samples`` (n,), unchanged up to :data:`RELEASE` after ``end``, and silent after another :data:`DECAY`. ``end``
    may be negative."""
    first = end + RELEASE
    if len(samples) <= first:
        return samples
    places = np.arange(max(first, 0), len(samples)) - first
    gains = 0.5 + 0.5 * np.cos(np.pi * np.minimum(places / DECAY, 1))
    return np.concatenate([samples[: max(first, 0)], samples[max(first, 0) :] * gains]).astype(np.float32)
