"""Codes to audio as they come, exactly as all at once: the decoder of :mod:`engine.models.networks.quantised_mel` and
Vocos."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.models.families.passages import Decoded
from engine.models.networks.quantised_mel import QuantisedMel
from engine.models.networks.streaming import StreamedBlocks, StreamedVocos
from engine.models.networks.vocos import Vocos


class StreamedMel:
    """One passage; what it remembers is the passage's own."""

    def __init__(self, codec: QuantisedMel, vocoder: Vocos, voice: Tensor) -> None:
        """``voice`` is the mean mel (bands,) of who speaks."""
        self._codec, self._vocoder, self._voice = codec, vocoder, voice[None]
        self._tokens = StreamedBlocks(codec.decoder["tokens"].children())
        self._frames = StreamedBlocks(codec.decoder["frames"].children())
        self._audio = StreamedVocos(vocoder)
        self._mels: list[np.ndarray] = []

    @torch.inference_mode()
    def push(self, codes: Tensor) -> np.ndarray:
        """The next tokens' codes (n, …) to the audio that is final now, (m,) float32."""
        frames = self._frames.push(self._codec.spread(self._tokens.push(self._entered(codes))))
        return self._audio.push(self._left(frames)).cpu().numpy()

    @torch.inference_mode()
    def finish(self, codes: Tensor) -> np.ndarray:
        """The last tokens' codes (n, …), of which there may be none, to the rest of the audio, (m,) float32."""
        hidden = torch.cat([self._tokens.push(self._entered(codes)), self._tokens.finish()], dim=2)
        frames = torch.cat([self._frames.push(self._codec.spread(hidden)), self._frames.finish()], dim=2)
        return torch.cat([self._audio.push(self._left(frames)), self._audio.finish()]).cpu().numpy()

    @torch.inference_mode()
    def whole(self, codes: Tensor) -> Decoded:
        """Log mel of the codes (n, …) of a whole passage, computed at once and independently of the rest."""
        if not len(codes):
            return Decoded(np.zeros(0, np.float32))
        mel = self._codec.decode(codes[None], self._voice)
        return Decoded(self._vocoder.decode(mel.mT)[0].cpu().numpy(), mel[0].cpu().numpy())

    @property
    def mel(self) -> np.ndarray | None:
        """(frames, bands) natural-log mel of what was decoded so far."""
        return np.concatenate(self._mels) if self._mels else None

    def _entered(self, codes: Tensor) -> Tensor:
        """Ready for the first block, (1, width, n)."""
        return self._codec.entered(codes[None], self._voice)

    def _left(self, frames: Tensor) -> Tensor:
        """Output of the last block to log mel, (1, bands, n)."""
        mel = self._codec.left(frames)
        self._mels.append(mel[0].cpu().numpy())
        return mel.mT
