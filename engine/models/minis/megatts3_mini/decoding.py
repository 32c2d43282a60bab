"""Latents to speech by the bundled model's mel codec and a vocoder."""

from __future__ import annotations

from torch import Tensor

from engine.models.families.passages import Decoded
from engine.models.minis.megatts3_mini.mel_codec import MelCodec
from engine.models.networks.vocos import Vocos


class MelDecoder:
    """Latents to mel frames, and these to audio; see :class:`engine.models.megatts3.decoding.LatentDecoder`."""

    def __init__(self, codec: MelCodec, vocoder: Vocos) -> None:
        self._codec, self._vocoder = codec, vocoder
        self.sample_rate = vocoder.config.sample_rate
        self.samples_per_latent = vocoder.config.hop * codec.config.stride

    def __call__(self, latents: Tensor, prompt_frames: int) -> Decoded:
        mel = self._codec.decode(latents, prompt_frames)
        samples = self._vocoder.decode(mel.transpose(1, 2))[0]
        return Decoded(samples.cpu().numpy(), mel[0].cpu().numpy())
