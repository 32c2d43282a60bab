"""Tokens of natural speech: what is said, apart from who says it, and back to audio in anybody's voice."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from engine.audio.mel import MelFrontEnd
from engine.errors import CheckpointError
from engine.models.families.passages import Decoded
from engine.models.load_request import LoadRequest
from engine.models.minis.coding import Coding
from engine.models.minis.natural.decoder import NaturalDecoder
from engine.models.minis.natural.layout import HOP, LATENT
from engine.models.minis.natural.said import NaturalVoice
from engine.models.minis.natural.streaming import StreamedNatural
from engine.models.minis.natural.vocoder import LatentVocoder
from engine.models.networks.quantised_mel import QuantisedMel
from engine.models.networks.streamed_codec import StreamedCodec

Codec = TypeVar("Codec", bound=QuantisedMel)


class NaturalCoding(Coding[Codec, NaturalVoice]):
    """Frames are voice frames (n, 36), read off a recording's mel; of these, a token holds what is said, which is at no
    level and in no voice."""

    hop = HOP
    nobody = NaturalVoice(0.0, 0.0)

    def __init__(self, codec: Codec, vocoder: LatentVocoder) -> None:
        super().__init__(codec)
        self._vocoder = vocoder
        self._mel = MelFrontEnd()

    @torch.inference_mode()
    def frames(self, mel: Tensor) -> Tensor:
        return self._vocoder.reader(mel.mT.float().to(self.device))[0]

    def voice_of(self, frames: Tensor) -> NaturalVoice:
        return NaturalVoice.of(frames)

    def codes(self, frames: Tensor, who: NaturalVoice) -> Tensor:
        return self.codec.encode(who.said(frames)[None])[0]

    def stream(self, who: NaturalVoice) -> StreamedSpeech:
        return StreamedSpeech(self.codec, self._vocoder.decoder, who, self._mel)


class StreamedSpeech:
    """Codes of one passage to audio at the level of a prompt. See :class:`engine.models.minis.coding.CodeStream`."""

    def __init__(self, codec: QuantisedMel, decoder: NaturalDecoder, who: NaturalVoice, mel: MelFrontEnd) -> None:
        # The codec's own voice is nobody's: who speaks is added to what it decodes.
        self._codec = StreamedCodec(codec, torch.zeros_like(codec.mel_mean))
        self._decoder, self._who, self._mel = decoder, who, mel
        self._audio = StreamedNatural(decoder)
        self._heard: list[Tensor] = []

    @torch.inference_mode()
    def push(self, codes: Tensor) -> np.ndarray:
        """As :class:`engine.models.minis.coding.CodeStream` says."""
        return self._kept(self._audio.push(self._who.frames(self._codec.push(codes))))

    @torch.inference_mode()
    def finish(self, codes: Tensor) -> np.ndarray:
        """As :class:`engine.models.minis.coding.CodeStream` says."""
        last = self._audio.push(self._who.frames(self._codec.finish(codes)))
        return self._kept(torch.cat([last, self._audio.finish()]))

    @torch.inference_mode()
    def whole(self, codes: Tensor) -> Decoded:
        """As :class:`engine.models.minis.coding.CodeStream` says."""
        if not len(codes):
            return Decoded(np.zeros(0, np.float32))
        samples = self._decoder.decode(self._who.frames(self._codec.whole(codes))).cpu()
        return Decoded(samples.numpy(), self._mel(samples)[0].numpy())

    @property
    def mel(self) -> np.ndarray | None:
        """(frames, bands) natural-log mel of what was heard so far."""
        samples = torch.cat(self._heard) if self._heard else torch.zeros(0)
        return self._mel(samples)[0].numpy() if len(samples) else None

    def _kept(self, samples: Tensor) -> np.ndarray:
        self._heard.append(samples.cpu())
        return self._heard[-1].numpy()


def natural_coding(request: LoadRequest, codec: Codec) -> NaturalCoding[Codec]:
    """The coding of a model whose phones are those of natural speech. Raises :class:`CheckpointError` if its codec or
    its vocoder is of other speech."""
    if codec.config.bands != LATENT:
        raise CheckpointError(
            f"The model in {request.place} reads the phones of natural speech, but its {codec.title} is not of natural "
            "speech: they do not belong together. Restore the model folder."
        )
    return NaturalCoding(codec, request.natural_vocoder())
