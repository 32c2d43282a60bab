"""Codes of the bundled masked model to audio, block by block, exactly as all at once.

A frame of audio depends on the codec's tokens around it, as far as convolutions reach. So much of a block is held back
until the next one has come; nothing is computed twice.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from paretone.models.families.passages import Decoded
from paretone.models.families.token_decoder import GridDecoder
from paretone.models.minis.natural.coding import StreamedSpeech


class ResidualGridDecoder(GridDecoder):
    """Hands a grid on to a stream of codes."""

    def __init__(self, stream: StreamedSpeech, codebooks: int, device: torch.device) -> None:
        """``device`` is that of the stream."""
        self._stream = stream
        self._none = torch.zeros(0, codebooks, dtype=torch.long, device=device)
        self._begun = False

    def push(self, codes: Tensor) -> np.ndarray:
        self._begun = self._begun or codes.shape[1] > 0
        return self._stream.push(codes.T) if codes.shape[1] else np.zeros(0, np.float32)

    def finish(self) -> np.ndarray:
        return self._stream.finish(self._none) if self._begun else np.zeros(0, np.float32)

    def whole(self, codes: Tensor) -> Decoded:
        return self._stream.whole(codes.T)

    @property
    def mel(self) -> np.ndarray | None:
        return self._stream.mel
