"""From speech tokens to audio while they are decoded: what every language model provides."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from paretone.models.families.passages import Decoded


class TokenDecoder(ABC):
    """Makes the tokens of one passage heard, as they come. Made new for every passage: what it remembers is the
    passage's own."""

    @abstractmethod
    def push(self, tokens: Sequence[int]) -> np.ndarray:
        """Take the next tokens, and return the audio that is final now, (n,) float32. It may be none: a decoder gathers
        as many tokens as make a run worth while, and waits for those that its output depends on."""

    @abstractmethod
    def finish(self) -> np.ndarray:
        """No token follows: the rest of the audio, (n,) float32. Without a single token, there is none."""

    @abstractmethod
    def whole(self, tokens: Sequence[int]) -> Decoded:
        """All audio at once, independent of :meth:`push` and :meth:`finish`, as their reference."""

    exact: ClassVar[bool] = True
    """Whether :meth:`push` and :meth:`finish` give exactly that, up to rounding."""

    def difference(self) -> StreamingDifference | None:
        """Difference of the streamed audio from :meth:`whole`, after its end; ``None`` for ``exact`` decoders. May take
        as long as decoding."""
        return None

    @property
    def mel(self) -> np.ndarray | None:
        """(frames, bands) natural-log mel of what was decoded so far, where the decoder has one."""
        return None


@dataclass(frozen=True)
class StreamingDifference:
    """Difference of streamed audio from the same tokens decoded at once."""

    largest: float
    """The largest difference of a sample, full scale 1."""
    level: float
    """Root mean square of the difference over that of the audio, in decibels; minus infinity if they are equal."""
    samples: int
    """By how many samples the lengths differ."""

    @property
    def sentence(self) -> str:
        """As a note on a take."""
        return (
            f"Streamed audio differs from audio decoded at once by {self.level:.0f} dB (at most {self.largest:.2g} of "
            "full scale), because the decoder looks at the whole utterance; longer windows or more context "
            "reduce this."
        )


def streaming_difference(streamed: np.ndarray, whole: np.ndarray) -> StreamingDifference:
    """Compare (n,) ``streamed`` with (m,) ``whole``."""
    shared = min(len(streamed), len(whole))
    error = streamed[:shared].astype(np.float64) - whole[:shared]
    if not shared:
        return StreamingDifference(0.0, -np.inf, abs(len(streamed) - len(whole)))
    energy = float(np.mean(whole[:shared].astype(np.float64) ** 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        level = 10 * np.log10(float(np.mean(error**2)) / energy) if energy and error.any() else -np.inf
    return StreamingDifference(float(np.abs(error).max()), float(level), abs(len(streamed) - len(whole)))


def largest_difference(decoders: Iterable[TokenDecoder | None]) -> StreamingDifference | None:
    """Effect of streaming on the speech of several passages: that of the passage with the largest difference."""
    found = (one.difference() for one in decoders if one is not None)
    differing = (one for one in found if one is not None and math.isfinite(one.level))
    return max(differing, key=lambda one: one.level, default=None)


class GridDecoder(ABC):
    """Makes the codes of one passage heard, frame by frame, exactly as all at once. Made new for every passage: what
    it remembers is the passage's own."""

    @abstractmethod
    def push(self, codes: Tensor) -> np.ndarray:
        """Take the next frames' codes, (codebooks, n), and return the audio that is final now, (m,) float32: that which
        no later frame can change."""

    @abstractmethod
    def finish(self) -> np.ndarray:
        """No frame follows: the rest of the audio, (n,) float32. Without a single frame, there is none."""

    @abstractmethod
    def whole(self, codes: Tensor) -> Decoded:
        """All audio at once, equal to :meth:`push` and :meth:`finish` but independent of them. A mask among the
        ``codes`` adds nothing to its frame, so that a grid that is not full can be heard: of a frame of which only the
        first codebooks are known, what these say."""

    @property
    def mel(self) -> np.ndarray | None:
        """(frames, bands) natural-log mel of what was decoded so far, where the decoder has one."""
        return None
