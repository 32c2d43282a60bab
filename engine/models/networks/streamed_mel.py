"""Codes to audio as they come, exactly as all at once: the decoder of :mod:`engine.models.networks.quantised_mel` and
Vocos."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.models.families.passages import Decoded
from engine.models.networks.quantised_mel import QuantisedMel
from engine.models.networks.streamed_codec import StreamedCodec
from engine.models.networks.streaming import StreamedVocos
from engine.models.networks.vocos import Vocos


class StreamedMel:
    """One passage; what it remembers is the passage's own. See :class:`engine.models.minis.coding.CodeStream`."""

    def __init__(self, codec: QuantisedMel, vocoder: Vocos, voice: Tensor) -> None:
        """``voice`` is the mean mel (bands,) of who speaks."""
        self._codec, self._vocoder = StreamedCodec(codec, voice), vocoder
        self._audio = StreamedVocos(vocoder)
        self._mels: list[np.ndarray] = []

    @torch.inference_mode()
    def push(self, codes: Tensor) -> np.ndarray:
        """The next tokens' codes (n, …) to the audio that is final now, (m,) float32."""
        return self._audio.push(self._kept(self._codec.push(codes))).cpu().numpy()

    @torch.inference_mode()
    def finish(self, codes: Tensor) -> np.ndarray:
        """The last tokens' codes (n, …), of which there may be none, to the rest of the audio, (m,) float32."""
        mel = self._kept(self._codec.finish(codes))
        return torch.cat([self._audio.push(mel), self._audio.finish()]).cpu().numpy()

    @torch.inference_mode()
    def whole(self, codes: Tensor) -> Decoded:
        """Audio and log mel of the codes (n, …) of a whole passage, computed at once and independently of the rest."""
        if not len(codes):
            return Decoded(np.zeros(0, np.float32))
        mel = self._codec.whole(codes)
        return Decoded(self._vocoder.decode(mel.T[None])[0].cpu().numpy(), mel.cpu().numpy())

    @property
    def mel(self) -> np.ndarray | None:
        """(frames, bands) natural-log mel of what was decoded so far."""
        return np.concatenate(self._mels) if self._mels else None

    def _kept(self, mel: Tensor) -> Tensor:
        """Log mel (n, bands) as the vocoder takes it, (1, bands, n)."""
        self._mels.append(mel.cpu().numpy())
        return mel.T[None]
