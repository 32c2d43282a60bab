"""Tokens of the bundled language model to audio, as they come, exactly as all at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.models.lm_mini.speech_tokenizer import SpeechTokenizer
from engine.models.passages import Decoded
from engine.models.streaming import StreamedBlocks, StreamedVocos
from engine.models.token_decoder import TokenDecoder
from engine.models.vocos import Vocos

GATHERED = 8
"""Tokens that are decoded at once: enough that calling the operators costs little, and 170 ms of speech."""


class MelTokenDecoder(TokenDecoder):
    """Tokens to mel frames by the tokenizer's decoder, and these to audio by Vocos."""

    def __init__(self, tokenizer: SpeechTokenizer, vocoder: Vocos, voice: Tensor) -> None:
        """``voice`` is the mean mel (bands,) of who speaks."""
        self._tokenizer, self._vocoder, self._voice = tokenizer, vocoder, voice[None]
        self._tokens = StreamedBlocks(tokenizer.decoder["tokens"])
        self._frames = StreamedBlocks(tokenizer.decoder["frames"])
        self._audio = StreamedVocos(vocoder)
        self._gathered: list[int] = []
        self._begun = False
        self._mels: list[np.ndarray] = []

    @torch.inference_mode()
    def push(self, tokens: Sequence[int]) -> np.ndarray:
        self._gathered.extend(tokens)
        if len(self._gathered) < GATHERED:
            return np.zeros(0, np.float32)
        frames = self._frames.push(self._tokenizer.spread(self._tokens.push(self._entered())))
        return self._audio.push(self._left(frames)).cpu().numpy()

    @torch.inference_mode()
    def finish(self) -> np.ndarray:
        if not self._gathered and not self._begun:
            return np.zeros(0, np.float32)
        hidden = torch.cat([self._tokens.push(self._entered()), self._tokens.finish()], dim=2)
        frames = torch.cat([self._frames.push(self._tokenizer.spread(hidden)), self._frames.finish()], dim=2)
        return torch.cat([self._audio.push(self._left(frames)), self._audio.finish()]).cpu().numpy()

    @torch.inference_mode()
    def whole(self, tokens: Sequence[int]) -> Decoded:
        if not len(tokens):
            return Decoded(np.zeros(0, np.float32))
        codes = torch.tensor([list(tokens)], device=self._voice.device)
        mel = self._tokenizer.decode(codes, self._voice)
        return Decoded(self._vocoder.decode(mel.mT)[0].cpu().numpy(), mel[0].cpu().numpy())

    @property
    def mel(self) -> np.ndarray | None:
        return np.concatenate(self._mels) if self._mels else None

    def _entered(self) -> Tensor:
        """What was gathered, (1, width, n), ready for the first block."""
        codes = torch.tensor([self._gathered], dtype=torch.long, device=self._voice.device)
        self._gathered, self._begun = [], True
        return self._tokenizer.entered(codes, self._voice)

    def _left(self, frames: Tensor) -> Tensor:
        """What the last block gave to log mel, (1, bands, n)."""
        mel = self._tokenizer.left(frames)
        self._mels.append(mel[0].cpu().numpy())
        return mel.mT
