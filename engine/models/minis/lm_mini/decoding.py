"""Tokens of the bundled language model to audio, as they come, exactly as all at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.models.families.passages import Decoded
from engine.models.families.token_decoder import TokenDecoder
from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from engine.models.networks.streamed_mel import StreamedMel
from engine.models.networks.vocos import Vocos

GATHERED = 8
"""Tokens that are decoded at once: enough that calling the operators costs little, and 170 ms of speech."""


class MelTokenDecoder(TokenDecoder):
    """Tokens to mel frames by the tokenizer's decoder, and these to audio by Vocos."""

    def __init__(self, tokenizer: SpeechTokenizer, vocoder: Vocos, voice: Tensor) -> None:
        """``voice`` is the mean mel (bands,) of who speaks."""
        self._device = voice.device
        self._stream = StreamedMel(tokenizer, vocoder, voice)
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
        """The gathered samples, (n,)."""
        codes = torch.tensor(self._gathered, dtype=torch.long, device=self._device)
        self._gathered, self._begun = [], True
        return codes
