"""WavVAE: latents of 25 Hz to audio of 24 kHz, and back if the user has the encoder's weights.

The decoder of the official release (``tts/modules/wavvae/decoder/wavvae_v3.py``, ``hifigan_modules.py``) under its own
names, with weight normalisation multiplied out. The release has no encoder; files with both halves can be read, too.

Upstream decodes prompt and target and discards the prompt. Here only the target is decoded, with the preceding latents
that its first sample depends on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.audio.mel import MelFrontEnd
from paretone.errors import CheckpointError
from paretone.models.families.passages import Decoded
from paretone.models.files.checkpoints import shapes_of
from paretone.models.files.config_file import ConfigFile, WeightShapes
from paretone.models.networks.layers import load_normalised
from paretone.models.networks.shapes import Modules, uninitialised

# Encoder of WavVAE, which the official release withholds: audio to latents, for users who have its weights.
#
# Official layout (``tts/modules/wavvae/decoder/seanet_encoder.py``): a SEANet encoder as in EnCodec (Défossez et al.,
# arXiv 2210.13438) with strides 2, 4, 4, 5 and 6, a two-layer LSTM, and a linear layer to means and log variances. No
# official weights exist for comparison: names, shapes and structure follow the released code.
LATENT_CHANNELS = 32
PARTS = ("encoder.", "proj_to_z.")
"""Prefixes of an encoder's weights, in a file that may contain a decoder too."""
FIRST_BIAS, LAST_WEIGHT = "encoder.encoder.model.0.conv.conv.bias", "proj_to_z.weight"
STRIDES = (2, 4, 4, 5, 6)
LOG_VARIANCE = (-30.0, 20.0)


class PaddedConv1d(nn.Module):
    """A convolution with reflection padding that returns one sample per ``stride`` samples, rounded up."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.padding = kernel - stride
        self.stride = stride
        self.conv = nn.ModuleDict({"conv": nn.Conv1d(inputs, outputs, kernel, stride)})

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, n) to (B, outputs, ceil(n / stride))."""
        right = self.padding // 2
        left = self.padding - right
        right += -x.shape[-1] % self.stride
        # Reflection needs more samples than it adds, so short inputs are extended by silence, which is cut afterwards.
        missing = max(max(left, right) - x.shape[-1] + 1, 0)
        padded = functional.pad(functional.pad(x, (0, missing)), (left, right), mode="reflect")
        return self.conv["conv"](padded[..., : padded.shape[-1] - missing])


class ResidualBlock(nn.Module):
    """Two convolutions over half the channels, added to a convolution over single samples."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.ELU(), PaddedConv1d(channels, channels // 2, 3), nn.ELU(), PaddedConv1d(channels // 2, channels, 1)
        )
        self.shortcut = PaddedConv1d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, n) to the same shape."""
        return self.shortcut(x) + self.block(x)


class ResidualLSTM(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(channels, channels, num_layers=2)

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, n) to the same shape."""
        return x + self.lstm(x.permute(2, 0, 1))[0].permute(1, 2, 0)


class Encoder(nn.Module):
    """Audio of 24 kHz to hidden frames of 25 Hz."""

    def __init__(self, channels: int = 32, width: int = 512) -> None:
        super().__init__()
        self.width = width
        layers: list[nn.Module] = [PaddedConv1d(1, channels, 7)]
        for stride in STRIDES:
            layers += [ResidualBlock(channels), nn.ELU(), PaddedConv1d(channels, 2 * channels, 2 * stride, stride)]
            channels *= 2
        layers += [ResidualLSTM(channels), nn.ELU(), PaddedConv1d(channels, width, 7)]
        self.encoder = nn.ModuleDict({"model": nn.Sequential(*layers)})

    def forward(self, samples: Tensor) -> Tensor:
        """(B, n) to (B, width, ceil(n / 960))."""
        return self.encoder["model"](samples.unsqueeze(1))


def sampled_latents(moments: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Sample the posterior: mean + exp(log variance / 2) · ε; (B, T, 64) to (B, T, 32). ``generator`` draws ε on the
    CPU, in the order (B, 32, T) as upstream; the default is the global generator."""
    mean, log_variance = moments.chunk(2, dim=-1)
    batch, frames, channels = mean.shape
    noise = torch.randn((batch, channels, frames), generator=generator).transpose(1, 2)
    return mean + torch.exp(0.5 * log_variance.clamp(*LOG_VARIANCE)) * noise.to(mean.device)


LATENT_RATIO = 4
"""Decoder frames per latent."""
SLOPE = 0.2
"""Slope of all leaky ReLUs."""
EDGE = 3
"""Samples reflected at either end before a convolution over seven."""
KERNELS = (3, 7, 11)
DILATIONS = (1, 3, 5)


@dataclass(frozen=True)
class WavVAEConfig:
    """Sizes. Widths are hard-coded upstream and read from the weights here; the others are in ``config.yaml``."""

    width: int = 320
    """Channels of projected latents."""
    channels: int = 128
    """Channels before the last convolution; doubled before each upsampling."""
    ratios: tuple[int, ...] = (5, 4, 4, 3)
    """Upsampling of the decoder, after that by :data:`LATENT_RATIO`."""
    sample_rate: int = 24000
    hop: int = 240
    """Samples per frame, the unit of durations."""
    stride: int = 4
    """Frames per latent."""

    @property
    def samples_per_latent(self) -> int:
        return self.hop * self.stride

    @classmethod
    def read(cls, path: Path, weights: Mapping[str, Tensor]) -> WavVAEConfig:
        """Read ``wavvae/config.yaml``, and the widths from ``weights``.

        Raises :class:`CheckpointError` if an entry is missing, or if the numbers are contradictory. Upstream defaults
        to a ``hop_size`` of 4, which cuts 16 samples per prompt latent instead of 960; that is an error here.
        """
        file = ConfigFile.read(path)
        melgan = file.part("melgan_config")
        if not melgan.flag("use_tanh"):
            raise CheckpointError(
                f"{path}: use_tanh is false, but only the released decoder, which ends in a tanh, fits."
            )
        if melgan.number("num_band", 1) != 1:
            raise CheckpointError(f"{path}: num_band must be 1; decoders of several bands are not supported.")
        ratios = tuple(melgan.numbers("up_sample", file.numbers("up_sample", cls.ratios)))
        shape = WeightShapes(shapes_of(weights), f"The file of weights next to {path}", "a decoder of WavVAE")
        config = cls(
            width=shape("proj_to_decoder.bias", 1)[0],
            channels=shape("decoder.model_up.12.weight_v", 3)[1],
            ratios=ratios,
            sample_rate=file.number("audio_sample_rate", cls.sample_rate),
            hop=file.number("hop_size"),
            stride=file.number("vae_stride", cls.stride),
        )
        decoded = LATENT_RATIO * prod(ratios)
        if config.samples_per_latent != decoded:
            raise CheckpointError(
                f"{path}: hop_size {config.hop} × vae_stride {config.stride} should be the {decoded} samples that the "
                "decoder makes of one latent; the released numbers are 240 and 4."
            )
        return config


class Upsampling(nn.Module):
    """Upsampling by ``ratio``: repetition and convolution, plus a transposed convolution. Halves the channels."""

    def __init__(self, channels: int, ratio: int) -> None:
        super().__init__()
        self.ratio, self.half_kernel = ratio, max(ratio, 5)
        half = self.half_kernel
        self.upsample = nn.Sequential(
            nn.Upsample(mode="nearest", scale_factor=ratio),
            nn.LeakyReLU(SLOPE),
            nn.ReflectionPad1d(EDGE),
            nn.Conv1d(channels, channels // 2, 2 * EDGE + 1),
        )
        self.trans_upsample = nn.Sequential(
            nn.LeakyReLU(SLOPE),
            nn.ConvTranspose1d(channels, channels // 2, 2 * half, ratio, half - ratio // 2, output_padding=ratio % 2),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, n) to (B, channels // 2, n · ratio)."""
        x = x + torch.sin(x)
        return self.upsample(x) + self.trans_upsample(x)

    def earliest(self, sample: int) -> int:
        """Earliest input that the outputs from ``sample`` depend on."""
        repeated = (sample - EDGE) // self.ratio
        # Input i affects outputs from i · ratio - padding over the kernel's length.
        reach = 2 * self.half_kernel - 1 - (self.half_kernel - self.ratio // 2)
        return min(repeated, -((reach - sample) // self.ratio))


class ResidualStack(nn.Module):
    """Three pairs of convolutions of one kernel size, dilated and plain, each pair with a residual connection."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.convs1 = Modules(
            nn.Conv1d(channels, channels, kernel, dilation=dilation, padding=dilation * (kernel // 2))
            for dilation in DILATIONS
        )
        self.convs2 = Modules(nn.Conv1d(channels, channels, kernel, padding=kernel // 2) for _ in DILATIONS)

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, n) to the same shape."""
        for dilated, plain in zip(self.convs1, self.convs2, strict=True):
            hidden = dilated(functional.leaky_relu(x, SLOPE))
            x = x + plain(functional.leaky_relu(hidden, SLOPE))
        return x


class FieldFusion(nn.Module):
    """Multi-receptive-field fusion (Kong et al., HiFi-GAN, arXiv 2010.05646): the mean of three residual stacks."""

    reach = max(KERNELS) // 2 * sum(dilation + 1 for dilation in DILATIONS)
    """Samples on either side that an output depends on."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block1, self.block2, self.block3 = (ResidualStack(channels, kernel) for kernel in KERNELS)

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, n) to the same shape."""
        return (self.block1(x) + self.block2(x) + self.block3(x)) / len(KERNELS)


class Generator(nn.Module):
    """Frames of 100 Hz, (B, width / 2, frames), to audio, (B, 1, samples), by ``model_up``."""

    def __init__(self, config: WavVAEConfig) -> None:
        super().__init__()
        widths = [config.channels << power for power in range(len(config.ratios), -1, -1)]
        layers: list[nn.Module] = [nn.ReflectionPad1d(EDGE), nn.Conv1d(config.width // 2, widths[0], 2 * EDGE + 1)]
        for (width, half), ratio in zip(pairwise(widths), config.ratios, strict=True):
            layers += [Upsampling(width, ratio), FieldFusion(half)]
        layers += [nn.LeakyReLU(SLOPE), nn.ReflectionPad1d(EDGE), nn.Conv1d(widths[-1], 1, 2 * EDGE + 1), nn.Tanh()]
        self.model_up = nn.Sequential(*layers)

    def earliest(self, sample: int) -> int:
        """Earliest frame that the samples from ``sample`` depend on."""
        for layer in reversed(self.model_up):
            if isinstance(layer, nn.ReflectionPad1d):
                sample -= EDGE
            elif isinstance(layer, FieldFusion):
                sample -= FieldFusion.reach
            elif isinstance(layer, Upsampling):
                sample = layer.earliest(sample)
        return sample


class WavVAE(nn.Module):
    """The decoder, with an optional encoder. Always float32, as upstream."""

    def __init__(self, config: WavVAEConfig, encoder: Encoder | None = None) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoder
        if encoder is not None:
            self.proj_to_z = nn.Linear(encoder.width, 2 * LATENT_CHANNELS)
        self.proj_to_decoder = nn.Linear(LATENT_CHANNELS, config.width)
        self.latent_upsampler = Upsampling(config.width, LATENT_RATIO)
        self.decoder = Generator(config)

    @property
    def margin(self) -> int:
        """Preceding latents that a latent's audio depends on."""
        return -self.latent_upsampler.earliest(self.decoder.earliest(0))

    @torch.inference_mode()
    def decode(self, latents: Tensor, prompt_frames: int = 0) -> Tensor:
        """Audio of ``latents`` (B, T, 32) without the first ``prompt_frames``: (B, n) float32, with n = (T -
        prompt_frames) · 960 in the release."""
        first = max(prompt_frames - self.margin, 0)
        hidden = self.proj_to_decoder(latents[:, first:].float()).transpose(1, 2)
        samples = self.decoder.model_up(self.latent_upsampler(hidden))[:, 0]
        return samples[:, (prompt_frames - first) * self.config.samples_per_latent :]

    @torch.inference_mode()
    def encode(self, samples: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Latents of audio (B, n): (B, ceil(n / 960), 32) float32, sampled from the encoder's posterior. Raises
        :class:`CheckpointError` without an encoder."""
        if self.encoder is None:
            raise CheckpointError(
                "The public release of MegaTTS 3 has no encoder for new recordings; use a recording that comes with "
                "its latent file (.npy), or put an encoder file of your own at wavvae/model_only_last.ckpt."
            )
        moments = self.proj_to_z(self.encoder(samples.float()).transpose(1, 2))
        return sampled_latents(moments, generator)

    @classmethod
    def from_official(cls, config_path: Path, weights: Mapping[str, Tensor], where: str) -> WavVAE:
        """Load the official tensors, ``['state_dict']['model_gen']``: a decoder alone, or both halves; strictly. Raises
        :class:`CheckpointError`."""
        config = WavVAEConfig.read(config_path, weights)
        with uninitialised(weights, where):
            encoder = None
            if any(name.startswith(PARTS) for name in weights):
                shape = WeightShapes(shapes_of(weights), where, "a complete encoder of WavVAE")
                encoder = Encoder(shape(FIRST_BIAS, 1)[0], shape(LAST_WEIGHT, 2)[1])
            model = cls(config, encoder)
        load_normalised(model, weights, where)
        return model.eval().requires_grad_(False)


class LatentDecoder(Protocol):
    sample_rate: int
    samples_per_latent: int

    def __call__(self, latents: Tensor, prompt_frames: int) -> Decoded:
        """Speech of ``latents`` (1, T, channels) after the first ``prompt_frames``."""


class WavDecoder:
    """Decodes all latents at once, like the official code; the mel is computed from the audio."""

    def __init__(self, wavvae: WavVAE) -> None:
        self._wavvae = wavvae
        self._mel = MelFrontEnd()
        self.sample_rate = wavvae.config.sample_rate
        self.samples_per_latent = wavvae.config.samples_per_latent

    def __call__(self, latents: Tensor, prompt_frames: int) -> Decoded:
        samples = self._wavvae.decode(latents, prompt_frames)[0]
        return Decoded(samples.cpu().numpy(), self._mel(samples)[0].cpu().numpy())
