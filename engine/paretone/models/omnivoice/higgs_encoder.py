"""Higgs Audio v2's codec, from speech to codes: a DAC encoder and what HuBERT hears, quantised together.

HuBERT is that of ``transformers``; the rest is own code, because the class of the whole codec there cannot be imported
without a ``torchaudio`` that fits. Resampling equals torchaudio's (:mod:`paretone.audio.prompt_resampling`).

Source: ``modeling_higgs_audio_v2_tokenizer.py`` and ``modeling_dac.py`` of transformers 5.18.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.audio.prompt_resampling import resample
from paretone.models.networks.shapes import Modules
from paretone.models.omnivoice.higgs import DILATIONS, KERNEL, Codebook, HiggsConfig, Quantizer, ResidualUnit, Snake

if TYPE_CHECKING:
    from transformers import HubertModel

HUBERT_HOP = 320
"""Samples between two of HuBERT's hidden states."""
HUBERT_PADDING = 160
"""Zeros that it is given on both sides."""


class EncoderBlock(nn.Module):
    """Shortens time by ``ratio`` and doubles the channels."""

    def __init__(self, channels: int, ratio: int) -> None:
        super().__init__()
        for number, dilation in enumerate(DILATIONS, 1):
            setattr(self, f"res_unit{number}", ResidualUnit(channels, dilation))
        self.snake1 = Snake(channels)
        self.conv1 = nn.Conv1d(channels, 2 * channels, 2 * ratio, ratio, math.ceil(ratio / 2))

    def forward(self, x: Tensor) -> Tensor:
        for number in range(1, len(DILATIONS) + 1):
            x = getattr(self, f"res_unit{number}")(x)
        return self.conv1(self.snake1(x))


class AcousticEncoder(nn.Module):
    """(B, 1, samples) to (B, latent, frames)."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__()
        width = config.encoder_width
        self.conv1 = nn.Conv1d(1, width, KERNEL, padding=KERNEL // 2)
        self.block = Modules(EncoderBlock(width << index, ratio) for index, ratio in enumerate(config.downsampling))
        width <<= len(config.downsampling)
        self.snake1 = Snake(width)
        self.conv2 = nn.Conv1d(width, config.latent, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        for block in self.block:
            x = block(x)
        return self.conv2(self.snake1(x))


class SemanticUnit(nn.Module):
    """A dilated convolution and a plain one, each after an exponential linear unit, added to their input."""

    def __init__(self, channels: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(
            channels, channels, kernel, dilation=dilation, padding=(kernel - 1) // 2 * dilation, bias=False
        )
        self.conv2 = nn.Conv1d(channels, channels, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(functional.elu(self.conv1(functional.elu(x))))


class SemanticBlock(nn.Module):
    """Residual units, then a convolution that may shorten time."""

    def __init__(self, config: HiggsConfig, channels: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.res_units = Modules(
            SemanticUnit(channels, config.unit_kernel, dilation) for dilation in config.block_dilations
        )
        kernel = 3 if stride == 1 else 2 * stride
        self.conv = nn.Conv1d(channels, outputs, kernel, stride, (kernel - 1) // 2)

    def forward(self, x: Tensor) -> Tensor:
        for unit in self.res_units:
            x = unit(x)
        return self.conv(x)


class SemanticEncoder(nn.Module):
    """Features of HuBERT, (B, semantic, frames), to the part that is quantised, of the same shape."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__()
        width = config.semantic_width
        self.conv = nn.Conv1d(width, width, config.kernel, padding=config.kernel // 2, bias=False)
        widths = [width, *(int(width * ratio) for ratio in config.channel_ratios)]
        self.conv_blocks = Modules(
            SemanticBlock(config, inputs, outputs, stride)
            for inputs, outputs, stride in zip(widths[:-1], widths[1:], config.strides, strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        for block in self.conv_blocks:
            x = block(x)
        return x


class EncodingCodebook(Codebook):
    """A codebook that finds entries, too."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__(config)
        self.project_in = nn.Linear(config.width, config.codebook_width)

    def nearest(self, x: Tensor) -> Tensor:
        """(B, frames, width) to the codes (B, frames) of the entries that are nearest."""
        inner, entries = self.project_in(x), self.codebook.embed
        distances = inner.square().sum(-1, keepdim=True) - 2 * inner @ entries.t() + entries.square().sum(-1)
        return distances.argmin(-1)


class HiggsEncoder(nn.Module):
    """Speech (B, samples) at the codec's rate to codes (B, codebooks, frames)."""

    def __init__(self, config: HiggsConfig, hubert: HubertModel) -> None:
        super().__init__()
        self.config = config
        self.acoustic_encoder = AcousticEncoder(config)
        self.semantic_model = hubert
        self.encoder_semantic = SemanticEncoder(config)
        self.fc = nn.Linear(config.width, config.width)
        self.quantizer = Quantizer(EncodingCodebook(config) for _ in range(config.codebooks))

    def semantic(self, samples: Tensor) -> Tensor:
        """Features of HuBERT, (B, semantic, frames): the mean of all its hidden states, at the codec's frame rate."""
        config = self.config
        heard = resample(samples, config.sample_rate, config.semantic_rate)
        heard = functional.pad(heard, (HUBERT_PADDING, HUBERT_PADDING))
        states = self.semantic_model(heard, output_hidden_states=True).hidden_states
        rate = config.semantic_rate / HUBERT_HOP
        return torch.stack(states).mean(dim=0)[:, :: max(int(rate / config.frame_rate), 1)].transpose(1, 2)

    def embedded(self, samples: Tensor) -> Tensor:
        """Vectors to quantise, (B, width, frames)."""
        semantic = self.encoder_semantic(self.semantic(samples))
        sound = samples[:, None]
        if self._acoustic_frames(sound.shape[2]) != semantic.shape[2]:
            sound = functional.pad(sound, (self.config.hop // 2, self.config.hop // 2))
        both = torch.cat([self.acoustic_encoder(sound), semantic], dim=1)
        return self.fc(both.transpose(1, 2)).transpose(1, 2)

    def forward(self, samples: Tensor) -> Tensor:
        left, codes = self.embedded(samples).transpose(1, 2), []
        for codebook in self.quantizer.quantizers:
            codes.append(codebook.nearest(left))
            left = left - codebook(codes[-1])
        return torch.stack(codes, dim=1)

    def _acoustic_frames(self, samples: int) -> int:
        """Number of frames that the acoustic encoder makes of a number of samples."""
        for module in self.acoustic_encoder.modules():
            if isinstance(module, nn.Conv1d):
                (kernel,), (stride,), (dilation,) = module.kernel_size, module.stride, module.dilation
                padding = int(module.padding[0])
                samples = (samples + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        return samples
