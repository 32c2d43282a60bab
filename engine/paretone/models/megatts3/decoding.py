"""Latents to speech. Only the target is decoded."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from paretone.audio.mel import MelFrontEnd
from paretone.models.families.passages import Decoded
from paretone.models.megatts3.wavvae import WavVAE


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
