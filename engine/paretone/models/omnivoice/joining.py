"""Joining of OmniVoice's passages: silence cut, levelled, faded at both ends, with silence between and around them.
Torch-free.

A single passage on a whole canvas is processed as upstream does. Of several, upstream processes all at the end; here
each is heard when it is done, and without a reference all get the level of the first. In blocks nothing can be cut or
levelled by audio that is still to come: there are only fades, the level of a reference if there is one, and no silence
in front, so that speech begins with the first sample.
"""

from __future__ import annotations

import numpy as np

from paretone.models.omnivoice.sound import (
    FADE_SECONDS,
    OUTPUT_PAUSES,
    PAD_SECONDS,
    PEAK,
    QUIET,
    fade_edges,
    without_silence,
)


class WholePassages:
    """Joins passages that come whole. See :class:`paretone.models.families.speech.Joiner`."""

    def __init__(self, rate: int, level: float | None, *, cut: bool) -> None:
        """``level`` is the root mean square of the reference; silence is cut where ``cut``."""
        self._rate, self._cut = rate, cut
        self._gain = None if level is None else min(level / QUIET, 1.0)
        self._silence, self._fade = int(PAD_SECONDS * rate), int(FADE_SECONDS * rate)
        self._returned = 0
        self.lead = 0

    def begin(self) -> int:
        return self._returned

    def push(self, samples: np.ndarray) -> np.ndarray:
        gone = 0
        if self._cut:
            samples, gone = without_silence(samples, self._rate, *OUTPUT_PAUSES)
        if self._gain is None:
            peak = float(np.abs(samples).max(initial=0.0))
            self._gain = PEAK / peak if peak > 1e-6 else None
        samples = samples * np.float32(1.0 if self._gain is None else self._gain)
        self.lead = self._silence - gone
        return self._given(np.concatenate([self._zeros(), fade_edges(samples, self._fade)]))

    def finish(self) -> np.ndarray:
        return self._given(self._zeros())

    def _zeros(self) -> np.ndarray:
        return np.zeros(self._silence, np.float32)

    def _given(self, samples: np.ndarray) -> np.ndarray:
        self._returned += len(samples)
        return samples


class StreamedPassages:
    """Joins passages that come in pieces. See :class:`paretone.models.families.speech.Joiner`."""

    def __init__(self, rate: int, level: float | None) -> None:
        """``level`` is the root mean square of the reference."""
        self._gain = np.float32(1.0 if level is None else min(level / QUIET, 1.0))
        self._gap, self._fade = int(PAD_SECONDS * rate), int(FADE_SECONDS * rate)
        self._held = np.zeros(0, np.float32)
        """The end of what has come of the passage: it fades out, should nothing follow."""
        self._rising = 0
        """Samples of the passage that have faded in."""
        self._ended: np.ndarray | None = None
        """The end of the passage before, not returned yet."""
        self._returned = 0
        self.lead = 0

    def begin(self) -> int:
        if len(self._held):
            self._ended = np.concatenate([self._faded_out(), np.zeros(self._gap, np.float32)])
        self._rising = 0
        return self._returned + (0 if self._ended is None else len(self._ended))

    def push(self, samples: np.ndarray) -> np.ndarray:
        joined = np.concatenate([self._held, self._faded_in(samples * self._gain)])
        final = max(len(joined) - self._fade, 0)
        self._held = joined[final:]
        ready = joined[:final]
        if self._ended is not None:
            ready, self._ended = np.concatenate([self._ended, ready]), None
        return self._given(ready)

    def finish(self) -> np.ndarray:
        return self._given(self._faded_out())

    def _faded_in(self, samples: np.ndarray) -> np.ndarray:
        places = np.arange(self._rising, self._rising + len(samples), dtype=np.float32)
        self._rising += len(samples)
        return samples * np.minimum(places / max(self._fade - 1, 1), 1.0).astype(np.float32)

    def _faded_out(self) -> np.ndarray:
        held, self._held = self._held, np.zeros(0, np.float32)
        return held * np.linspace(1, 0, len(held), dtype=np.float32)

    def _given(self, samples: np.ndarray) -> np.ndarray:
        self._returned += len(samples)
        return samples
