"""Tokens of mel frames, which Vocos makes heard; who speaks is a mean mel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from torch import Tensor

from engine.models.base import Voice
from engine.models.minis.coding import Coding
from engine.models.minis.frames import HOP
from engine.models.networks.quantised_mel import QuantisedMel
from engine.models.networks.streamed_mel import StreamedMel
from engine.models.networks.vocos import Vocos

Codec = TypeVar("Codec", bound=QuantisedMel)


class MelCoding(Coding[Codec, Tensor]):
    """Who speaks is the mean mel (bands,) of a recording."""

    hop = HOP

    def __init__(self, codec: Codec, vocoder: Vocos) -> None:
        super().__init__(codec)
        self._vocoder = vocoder
        self.nobody = codec.mel_mean

    def frames(self, mel: Tensor) -> Tensor:
        return mel[0].to(self.device)

    def voice_of(self, frames: Tensor) -> Tensor:
        return frames.mean(0)

    def codes(self, frames: Tensor, who: Tensor) -> Tensor:
        return self.codec.encode(frames[None])[0]

    def stream(self, who: Tensor) -> StreamedMel:
        return StreamedMel(self.codec, self._vocoder, who)


class KnownVoicesCoding(MelCoding[Codec]):
    """Who speaks is the mean mel of much of a voice's speech, known for some voices only."""

    def __init__(self, codec: Codec, vocoder: Vocos, means: Mapping[str, Tensor]) -> None:
        super().__init__(codec, vocoder)
        self._means = means

    def speaker(self, voice: Voice, frames: Tensor) -> Tensor:
        return self._means[voice.id]
