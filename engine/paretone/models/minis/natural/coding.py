"""Tokens of natural speech: what is said, apart from who says it, and back to audio in anybody's voice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from paretone.audio.mel import MelFrontEnd
from paretone.errors import CheckpointError
from paretone.front_end.phones import PhoneVocabulary, TimedPhone, labels, last_sound
from paretone.models.families.passages import Decoded
from paretone.models.load_request import LoadRequest
from paretone.models.minis.natural.decoder import NaturalDecoder
from paretone.models.minis.natural.layout import HOP, LATENT, SAMPLE_RATE
from paretone.models.minis.natural.said import NaturalVoice
from paretone.models.minis.natural.streaming import StreamedNatural
from paretone.models.minis.natural.vocoder import LatentVocoder
from paretone.models.networks.quantised_mel import QuantisedMel, StreamedCodec

Codec = TypeVar("Codec", bound=QuantisedMel)


NOBODY = NaturalVoice(0.0, 0.0)
"""A voice that stands for any, to warm up with."""


class NaturalCoding(Generic[Codec]):
    """What the tokens of a bundled model are made of. Frames are voice frames (n, 36), read off a recording's mel; of
    these, a token holds what is said, which is at no level and in no voice."""

    def __init__(self, codec: Codec, vocoder: LatentVocoder) -> None:
        self.codec = codec
        self._vocoder = vocoder
        self._mel = MelFrontEnd()

    @property
    def device(self) -> torch.device:
        """The codec's."""
        return self.codec.mel_mean.device

    @property
    def stride(self) -> int:
        """Frames of a token."""
        return self.codec.config.stride

    @property
    def token_seconds(self) -> float:
        """How long a token is heard."""
        return HOP * self.stride / SAMPLE_RATE

    @torch.inference_mode()
    def frames(self, mel: Tensor) -> Tensor:
        """Frames (n, 36) of a recording's log mel (1, mel frames, 100), on the codec's device."""
        return self._vocoder.reader(mel.mT.float().to(self.device))[0]

    def codes(self, frames: Tensor, who: NaturalVoice) -> Tensor:
        """Codes (n // stride, …), int64, of frames (n, 36) in which ``who`` speaks; what does not fill a token is left
        out."""
        return self.codec.encode(who.said(frames)[None])[0]

    def stream(self, who: NaturalVoice) -> StreamedSpeech:
        """What makes the codes of a passage heard, spoken by ``who``."""
        return StreamedSpeech(self.codec, self._vocoder.decoder, who, self._mel)

    @torch.inference_mode()
    def copied(self, samples: np.ndarray, who: NaturalVoice) -> np.ndarray:
        """Copy of speech (n,) by ``who`` through the tokens, (m,) float32, both at 24 kHz."""
        frames = self.frames(self._mel(torch.from_numpy(samples)))
        return self.stream(who).whole(self.codes(frames, who)).samples

    def frames_until(self, phones: Sequence[TimedPhone]) -> int:
        """Frames from the beginning to the end of the last of ``phones``."""
        return round(phones[-1][2] * SAMPLE_RATE / HOP)

    def end_of(self, phones: Sequence[TimedPhone]) -> int:
        """Sample at which the last sound of ``phones`` is over."""
        return round(last_sound(phones) * SAMPLE_RATE)

    def labels(self, phones: Sequence[TimedPhone], frames: int, vocabulary: PhoneVocabulary) -> np.ndarray:
        """(frames,) int64 ids of the phones that sound at the middles of frames."""
        return labels(phones, frames, vocabulary, SAMPLE_RATE, HOP)


class StreamedSpeech:
    """Makes the codes of one passage heard, at the level of a prompt; the same sound in pieces and at once."""

    def __init__(self, codec: QuantisedMel, decoder: NaturalDecoder, who: NaturalVoice, mel: MelFrontEnd) -> None:
        # The codec's own voice is nobody's: who speaks is added to what it decodes.
        self._codec = StreamedCodec(codec, torch.zeros_like(codec.mel_mean))
        self._decoder, self._who, self._mel = decoder, who, mel
        self._audio = StreamedNatural(decoder)
        self._heard: list[Tensor] = []

    @torch.inference_mode()
    def push(self, codes: Tensor) -> np.ndarray:
        """The next tokens' codes (n, …) to the audio that is final now, (m,) float32."""
        return self._kept(self._audio.push(self._who.frames(self._codec.push(codes))))

    @torch.inference_mode()
    def finish(self, codes: Tensor) -> np.ndarray:
        """The last tokens' codes (n, …), of which there may be none, to the rest of the audio, (m,) float32."""
        last = self._audio.push(self._who.frames(self._codec.finish(codes)))
        return self._kept(torch.cat([last, self._audio.finish()]))

    @torch.inference_mode()
    def whole(self, codes: Tensor) -> Decoded:
        """All codes (n, …) of a passage at once, independently of the rest."""
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
    """The coding of a model with this codec. Raises :class:`CheckpointError` if its codec or its vocoder is of other
    speech."""
    if codec.config.bands != LATENT:
        raise CheckpointError(
            f"The model in {request.place} reads the phones of natural speech, but its {codec.title} is not of natural "
            "speech: they do not belong together. Restore the model folder."
        )
    return NaturalCoding(codec, request.natural_vocoder())
