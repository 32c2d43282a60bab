"""Tokens of the bundled language model to audio, as they come, exactly as all at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from paretone.models.families.passages import Decoded
from paretone.models.families.token_decoder import TokenDecoder
from paretone.models.minis.natural_coding import StreamedSpeech

GATHERED = 8
"""Tokens that are decoded at once: enough that calling the operators costs little, and 170 to 200 ms of speech."""


class GatheringDecoder(TokenDecoder):
    """Hands tokens on to a stream some at a time."""

    def __init__(self, stream: StreamedSpeech, device: torch.device) -> None:
        """``device`` is that of the stream."""
        self._device, self._stream = device, stream
        self._gathered: list[int] = []
        self._begun = False

    def push(self, tokens: Sequence[int]) -> np.ndarray:
        self._gathered.extend(tokens)
        if len(self._gathered) < GATHERED:
            return np.zeros(0, np.float32)
        return self._stream.push(self._taken())

    def finish(self) -> np.ndarray:
        if not self._gathered and not self._begun:
            return np.zeros(0, np.float32)
        return self._stream.finish(self._taken())

    def whole(self, tokens: Sequence[int]) -> Decoded:
        return self._stream.whole(torch.tensor(list(tokens), dtype=torch.long, device=self._device))

    @property
    def mel(self) -> np.ndarray | None:
        return self._stream.mel

    def _taken(self) -> Tensor:
        """The gathered tokens, (n,)."""
        codes = torch.tensor(self._gathered, dtype=torch.long, device=self._device)
        self._gathered, self._begun = [], True
        return codes
