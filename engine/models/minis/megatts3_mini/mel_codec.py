"""The latents of the bundled MegaTTS 3: a small autoencoder between mel frames and 32 numbers per four of them.

The official release decodes its latents to audio at once (WavVAE) and withholds the encoder. The bundled model has
its own codec in that place, encoder included: ConvNeXt blocks as in Vocos, latents of mean zero and variance one, a
mel spectrogram that Vocos decodes. Its files lie where the official ones would: ``wavvae/config.yaml`` with a part
``mel_codec``, and ``wavvae/mel_codec.safetensors``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.models.files.checkpoints import load_strictly, read_float_weights
from engine.models.files.config_file import ConfigFile
from engine.models.networks.mel_statistics import MelStatistics
from engine.models.networks.vocos import ConvNeXtBlock

CONFIG_FILE = "config.yaml"
WEIGHT_FILE = "mel_codec.safetensors"
ENTER_WIDTH = 3
"""Latents that the decoder's first convolution sees."""
BLOCK_REACH = 3
"""Positions on either side that a ConvNeXt block's output depends on."""


@dataclass(frozen=True)
class MelCodecConfig:
    """Sizes of a codec, as ``config.yaml`` lists them under ``mel_codec``."""

    bands: int = 100
    latent: int = 32
    stride: int = 4
    """Mel frames of one latent frame; ``vae_stride`` of the official configuration."""
    width: int = 192
    inner_width: int = 384
    frame_layers: int = 3
    """Blocks at the rate of the mel, in the encoder and in the decoder each."""
    latent_layers: int = 2
    """Blocks at the rate of the latents, likewise."""


class MelCodec(MelStatistics):
    """Encoder and decoder."""

    def __init__(self, config: MelCodecConfig) -> None:
        super().__init__(config.bands)
        self.config = config
        width, inner = config.width, config.inner_width

        def blocks(count: int) -> nn.Sequential:
            return nn.Sequential(*(ConvNeXtBlock(width, inner) for _ in range(count)))

        self.encoder = nn.ModuleDict(
            {
                "enter": nn.Conv1d(config.bands, width, kernel_size=5, padding=2),
                "frames": blocks(config.frame_layers),
                "gather": nn.Conv1d(width, width, kernel_size=config.stride, stride=config.stride),
                "latents": blocks(config.latent_layers),
                "leave": nn.Conv1d(width, config.latent, kernel_size=1),
                # Mean zero and variance one for every latent, from the statistics of training.
                "normalise": nn.BatchNorm1d(config.latent, affine=False, momentum=0.02),
            }
        )
        self.decoder = nn.ModuleDict(
            {
                "enter": nn.Conv1d(config.latent, width, kernel_size=ENTER_WIDTH, padding=ENTER_WIDTH // 2),
                "latents": blocks(config.latent_layers),
                "spread": nn.ConvTranspose1d(width, width, kernel_size=config.stride, stride=config.stride),
                "frames": blocks(config.frame_layers),
                "leave": nn.Conv1d(width, config.bands, kernel_size=1),
            }
        )

    def encode(self, mel: Tensor) -> Tensor:
        """Log mel (B, frames, bands) to latents (B, ⌈frames / stride⌉, latent); the last frame is repeated to fill."""
        missing = -mel.shape[1] % self.config.stride
        x = self.normalised(mel).transpose(1, 2)
        x = functional.pad(x, (0, missing), mode="replicate") if missing else x
        for name in ("enter", "frames", "gather", "latents", "leave", "normalise"):
            x = self.encoder[name](x)
        return x.transpose(1, 2)

    @property
    def margin(self) -> int:
        """Latents before a latent that the frames from it on depend on."""
        config = self.config
        return (
            ENTER_WIDTH // 2
            + BLOCK_REACH * config.latent_layers
            - (-BLOCK_REACH * config.frame_layers // config.stride)
        )

    def decode(self, latents: Tensor, prompt_frames: int = 0) -> Tensor:
        """Latents (B, n, latent) to log mel (B, n · stride, bands), without that of the first ``prompt_frames``
        latents, which are not decoded either unless what follows depends on them."""
        first = max(prompt_frames - self.margin, 0)
        x = latents[:, first:].transpose(1, 2)
        for name in ("enter", "latents", "spread", "frames", "leave"):
            x = self.decoder[name](x)
        x = x[..., (prompt_frames - first) * self.config.stride :]
        return self.log_mel(x.transpose(1, 2))

    @classmethod
    def load(cls, folder: Path, device: torch.device | str = "cpu") -> MelCodec:
        """Load a ``wavvae`` folder, in float32. Raises :class:`CheckpointError` that names the file at fault."""
        model = cls(ConfigFile.read(folder / CONFIG_FILE).part("mel_codec").sizes(MelCodecConfig))
        load_strictly(model, read_float_weights(folder / WEIGHT_FILE), str(folder / WEIGHT_FILE))
        return model.eval().requires_grad_(False).to(device)
