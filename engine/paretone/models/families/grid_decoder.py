"""From a grid of codes to audio while it is filled in: what every masked model provides."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from torch import Tensor

from paretone.models.families.passages import Decoded


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
