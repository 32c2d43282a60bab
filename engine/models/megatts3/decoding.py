"""Latents to speech: by WavVAE, or by the bundled model's mel codec and a vocoder. Only the target is decoded."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from engine.audio.mel import MelFrontEnd
from engine.models.families.passages import Decoded
from engine.models.megatts3.wavvae import WavVAE
from engine.models.minis.megatts3_mini.mel_codec import MelCodec
from engine.models.networks.vocos import Vocos


class LatentDecoder(Protocol):
    """Makes latents heard."""

    sample_rate: int
    samples_per_latent: int

    def __call__(self, latents: Tensor, prompt_frames: int) -> Decoded:
        """The speech of ``latents`` (1, T, channels) after the first ``prompt_frames`` of them."""


class WavDecoder:
    """Latents to audio at once, as officially; the mel is that of the audio."""

    def __init__(self, wavvae: WavVAE) -> None:
        self._wavvae = wavvae
        self._mel = MelFrontEnd()
        self.sample_rate = wavvae.config.sample_rate
        self.samples_per_latent = wavvae.config.samples_per_latent

    def __call__(self, latents: Tensor, prompt_frames: int) -> Decoded:
        samples = self._wavvae.decode(latents, prompt_frames)[0]
        return Decoded(samples.cpu().numpy(), self._mel(samples)[0].cpu().numpy())


class MelDecoder:
    """Latents to mel frames, and these to audio."""

    def __init__(self, codec: MelCodec, vocoder: Vocos) -> None:
        self._codec, self._vocoder = codec, vocoder
        self.sample_rate = vocoder.config.sample_rate
        self.samples_per_latent = vocoder.config.hop * codec.config.stride

    def __call__(self, latents: Tensor, prompt_frames: int) -> Decoded:
        mel = self._codec.decode(latents, prompt_frames)
        samples = self._vocoder.decode(mel.transpose(1, 2))[0]
        return Decoded(samples.cpu().numpy(), mel[0].cpu().numpy())
