"""Higgs Audio v2's codec, codes to speech: eight residual codebooks at 25 frames per second, and a DAC decoder without
its final tanh.

A frame's codes reach exactly ten frames to either side, so decoding in windows with that context equals decoding all
codes at once, at a cost independent of the past.

Source: ``modeling_higgs_audio_v2_tokenizer.py`` and ``modeling_dac.py`` of transformers 5.18, whose module names are
used; DAC, Kumar et al., arXiv 2306.06546.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.audio.mel import resample_prompt
from paretone.models.families.passages import Decoded, GridDecoder
from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.layers import Residual
from paretone.models.networks.shapes import Modules

if TYPE_CHECKING:
    from transformers import HubertModel


DILATIONS = (1, 3, 9)
"""Dilations of a block's three residual units."""
KERNEL = 7
_AROUND = KERNEL // 2 * sum(DILATIONS)
"""Reach of a block's residual units to either side, in positions."""


@dataclass(frozen=True)
class HiggsConfig:
    """Sizes of the codec; the defaults are the release's, without HuBERT's own."""

    sample_rate: int = 24000
    ratios: tuple[int, ...] = (8, 5, 4, 2, 3)
    """Upsampling factors of the decoder's blocks."""
    downsampling: tuple[int, ...] = (8, 5, 4, 2, 3)
    """Downsampling factors of the encoder's blocks."""
    latent: int = 256
    """Channels of the decoder's input."""
    decoder_width: int = 1024
    encoder_width: int = 64
    semantic_width: int = 768
    codebook_size: int = 1024
    codebook_width: int = 64
    bandwidth: float = 2.0
    """Maximum bandwidth of the release, in kilobits per second."""
    kernel: int = 3
    """Kernel size of the semantic encoder's convolutions."""
    strides: tuple[int, ...] = (1, 1)
    channel_ratios: tuple[float, ...] = (1, 1)
    block_dilations: tuple[int, ...] = (1, 1)
    unit_kernel: int = 3
    semantic_rate: int = 16000
    semantic: Mapping = field(default_factory=dict)
    """Configuration of HuBERT."""

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> HiggsConfig:
        """Read the codec's ``config.json``. Raises :class:`CheckpointError` that names missing entries."""
        file = ConfigFile.of(config, "The codec's config.json")
        acoustic, semantic = (file.part(f"{name}_model_config", needed=True) for name in ("acoustic", "semantic"))
        return cls(
            file.number("sample_rate"),
            acoustic.numbers("upsampling_ratios"),
            acoustic.numbers("downsampling_ratios"),
            acoustic.number("hidden_size"),
            acoustic.number("decoder_hidden_size"),
            acoustic.number("encoder_hidden_size"),
            semantic.number("hidden_size"),
            file.number("codebook_size", least=2),
            file.number("codebook_dim"),
            file.reals("target_bandwidths")[-1],
            file.number("kernel_size"),
            file.numbers("strides"),
            file.reals("channel_ratios"),
            file.numbers("block_dilations"),
            file.number("unit_kernel_size"),
            file.number("semantic_sample_rate"),
            dict(semantic.entries),
        )

    @property
    def hop(self) -> int:
        """Samples per frame."""
        return math.prod(self.ratios)

    @property
    def frame_rate(self) -> float:
        return self.sample_rate / self.hop

    @property
    def width(self) -> int:
        """Channels of the quantiser's input."""
        return self.latent + self.semantic_width

    @property
    def codebooks(self) -> int:
        frames = math.ceil(self.sample_rate / self.hop)
        return max(1, math.floor(self.bandwidth / (math.log2(self.codebook_size) * frames / 1000)))


class Snake(nn.Module):
    """``x + sin²(αx) / α`` with an α per channel (Ziyin et al., arXiv 2006.08195)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addcdiv(x, (x * self.alpha).sin().square(), self.alpha + 1e-9)


class ResidualUnit(Residual):
    """A dilated and a plain convolution with a residual connection; (B, channels, n)."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.snake1 = Snake(channels)
        self.conv1 = nn.Conv1d(channels, channels, KERNEL, dilation=dilation, padding=KERNEL // 2 * dilation)
        self.snake2 = Snake(channels)
        self.conv2 = nn.Conv1d(channels, channels, 1)


class DecoderBlock(nn.Sequential):
    """Upsamples by ``ratio`` and halves the channels."""

    def __init__(self, channels: int, ratio: int) -> None:
        super().__init__()
        self.snake1 = Snake(channels)
        self.conv_t1 = nn.ConvTranspose1d(
            channels, channels // 2, 2 * ratio, ratio, math.ceil(ratio / 2), output_padding=ratio % 2
        )
        self.res_unit1, self.res_unit2, self.res_unit3 = (ResidualUnit(channels // 2, one) for one in DILATIONS)


class AcousticDecoder(nn.Sequential):
    """(B, latent, frames) to (B, 1, samples)."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__()
        width = config.decoder_width
        self.conv1 = nn.Conv1d(config.latent, width, KERNEL, padding=KERNEL // 2)
        blocks = (DecoderBlock(width >> index, ratio) for index, ratio in enumerate(config.ratios))
        self.block = nn.Sequential(*blocks)
        width >>= len(config.ratios)
        self.snake1 = Snake(width)
        self.conv2 = nn.Conv1d(width, 1, KERNEL, padding=KERNEL // 2)


class Entries(nn.Module):
    """Vectors of a codebook's codes, (codes, width)."""

    embed: Tensor

    def __init__(self, codes: int, width: int) -> None:
        super().__init__()
        self.register_buffer("embed", torch.zeros(codes, width))


class Codebook(nn.Module):
    """Entries, and their projection to the quantiser's width."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__()
        self.codebook = Entries(config.codebook_size, config.codebook_width)
        self.project_out = nn.Linear(config.codebook_width, config.width)

    def forward(self, codes: Tensor) -> Tensor:
        """Codes (B, frames) to (B, frames, width); indices without an entry, such as the mask, give zero."""
        entries = self.codebook.embed
        found = self.project_out(nn.functional.embedding(codes.clamp(max=len(entries) - 1), entries))
        return found.masked_fill((codes >= len(entries))[..., None], 0.0)


Kind = TypeVar("Kind", bound=Codebook)


class Quantizer(nn.Module, Generic[Kind]):
    def __init__(self, codebooks: Iterable[Kind]) -> None:
        super().__init__()
        self.quantizers = Modules(codebooks)


class HiggsDecoder(nn.Module):
    """Codes (B, codebooks, frames) to speech (B, samples)."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__()
        self.config = config
        self.quantizer = Quantizer(Codebook(config) for _ in range(config.codebooks))
        self.fc2 = nn.Linear(config.width, config.latent)
        self.acoustic_decoder = AcousticDecoder(config)

    def summed(self, codes: Tensor) -> Tensor:
        """Sum of the codes' vectors, (B, width, frames)."""
        first, *others = (
            codebook(one) for codebook, one in zip(self.quantizer.quantizers, codes.unbind(1), strict=True)
        )
        return sum(others, first).transpose(1, 2)

    def forward(self, codes: Tensor) -> Tensor:
        latent = self.fc2(self.summed(codes).transpose(1, 2)).transpose(1, 2)
        return self.acoustic_decoder(latent)[:, 0]


def reach(ratios: Sequence[int]) -> tuple[int, int]:
    """Number of earlier and later frames that a frame's samples depend on."""
    first, last = 0, math.prod(ratios) - 1
    first, last = first - KERNEL // 2, last + KERNEL // 2
    for ratio in reversed(ratios):
        first, last = first - _AROUND, last + _AROUND
        padding = math.ceil(ratio / 2)
        # Input i of a transposed convolution adds to the 2 · ratio outputs from i · ratio − padding.
        first, last = math.ceil((first + padding - 2 * ratio + 1) / ratio), (last + padding) // ratio
    return -(first - KERNEL // 2), last + KERNEL // 2


class WindowedHiggs(GridDecoder):
    """Streaming decoder of one passage's codes, window by window."""

    def __init__(self, codec: HiggsDecoder) -> None:
        self._codec = codec
        self._before, self._after = reach(codec.config.ratios)
        self._codes: Tensor | None = None
        """Codes that further speech depends on."""
        self._heard = 0
        """Number of these frames already decoded."""

    @torch.inference_mode()
    def push(self, codes: Tensor) -> np.ndarray:
        codes = codes if self._codes is None else torch.cat([self._codes, codes], dim=1)
        return self._up_to(codes, codes.shape[1] - self._after)

    @torch.inference_mode()
    def finish(self) -> np.ndarray:
        return np.zeros(0, np.float32) if self._codes is None else self._up_to(self._codes, self._codes.shape[1])

    @torch.inference_mode()
    def whole(self, codes: Tensor) -> Decoded:
        return Decoded(self._codec(codes[None])[0].cpu().numpy())

    def _up_to(self, codes: Tensor, end: int) -> np.ndarray:
        """Decode the remaining frames of ``codes`` up to ``end``; keep the codes that further speech depends on."""
        self._codes = codes
        if end <= self._heard:
            return np.zeros(0, np.float32)
        hop = self._codec.config.hop
        samples = self._codec(codes[None])[0, self._heard * hop : end * hop].cpu().numpy()
        gone = max(end - self._before, 0)
        self._codes, self._heard = codes[:, gone:], end - gone
        return samples


# Higgs Audio v2's codec, speech to codes: a DAC encoder and HuBERT's features, quantised together.
#
# HuBERT is that of ``transformers``; the rest is own code, because its class of the whole codec cannot be imported
# without a matching ``torchaudio``. Resampling equals torchaudio's (:mod:`paretone.audio.mel`).
#
# Source: ``modeling_higgs_audio_v2_tokenizer.py`` and ``modeling_dac.py`` of transformers 5.18.
HUBERT_HOP = 320
"""Samples between HuBERT's hidden states."""
HUBERT_PADDING = 160
"""Zero padding of HuBERT's input on both sides."""


class EncoderBlock(nn.Sequential):
    """Downsamples by ``ratio`` and doubles the channels."""

    def __init__(self, channels: int, ratio: int) -> None:
        super().__init__()
        self.res_unit1, self.res_unit2, self.res_unit3 = (ResidualUnit(channels, one) for one in DILATIONS)
        self.snake1 = Snake(channels)
        self.conv1 = nn.Conv1d(channels, 2 * channels, 2 * ratio, ratio, math.ceil(ratio / 2))


class AcousticEncoder(nn.Sequential):
    """(B, 1, samples) to (B, latent, frames)."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__()
        width = config.encoder_width
        self.conv1 = nn.Conv1d(1, width, KERNEL, padding=KERNEL // 2)
        blocks = (EncoderBlock(width << index, ratio) for index, ratio in enumerate(config.downsampling))
        self.block = nn.Sequential(*blocks)
        width <<= len(config.downsampling)
        self.snake1 = Snake(width)
        self.conv2 = nn.Conv1d(width, config.latent, 3, padding=1)


def semantic_unit(channels: int, kernel: int, dilation: int) -> Residual:
    """A dilated and a plain convolution, each after an ELU, with a residual connection."""
    padding = (kernel - 1) // 2 * dilation
    dilated = nn.Conv1d(channels, channels, kernel, dilation=dilation, padding=padding, bias=False)
    plain = nn.Conv1d(channels, channels, 1, bias=False)
    return Residual(OrderedDict(elu1=nn.ELU(), conv1=dilated, elu2=nn.ELU(), conv2=plain))


class SemanticBlock(nn.Sequential):
    """Residual units, then a convolution that may downsample."""

    def __init__(self, config: HiggsConfig, channels: int, outputs: int, stride: int) -> None:
        super().__init__()
        units = (semantic_unit(channels, config.unit_kernel, dilation) for dilation in config.block_dilations)
        self.res_units = nn.Sequential(*units)
        kernel = 3 if stride == 1 else 2 * stride
        self.conv = nn.Conv1d(channels, outputs, kernel, stride, (kernel - 1) // 2)


class SemanticEncoder(nn.Sequential):
    """Features of HuBERT, (B, semantic, frames), to the semantic part of the quantiser's input, of the same shape."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__()
        width = config.semantic_width
        self.conv = nn.Conv1d(width, width, config.kernel, padding=config.kernel // 2, bias=False)
        widths = [width, *(int(width * ratio) for ratio in config.channel_ratios)]
        sizes = zip(widths[:-1], widths[1:], config.strides, strict=True)
        self.conv_blocks = nn.Sequential(*(SemanticBlock(config, *one) for one in sizes))


class EncodingCodebook(Codebook):
    def __init__(self, config: HiggsConfig) -> None:
        super().__init__(config)
        self.project_in = nn.Linear(config.width, config.codebook_width)

    def nearest(self, x: Tensor) -> Tensor:
        """(B, frames, width) to the codes (B, frames) of the nearest entries."""
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
        heard = resample_prompt(samples, config.sample_rate, config.semantic_rate)
        heard = functional.pad(heard, (HUBERT_PADDING, HUBERT_PADDING))
        states = self.semantic_model(heard, output_hidden_states=True).hidden_states
        rate = config.semantic_rate / HUBERT_HOP
        return torch.stack(states).mean(dim=0)[:, :: max(int(rate / config.frame_rate), 1)].transpose(1, 2)

    def embedded(self, samples: Tensor) -> Tensor:
        """Vectors to quantise, (B, width, frames)."""
        semantic = self.encoder_semantic(self.semantic(samples))
        sound = samples[:, None]
        frames = sound.shape[2]  # And after each of the acoustic encoder's convolutions.
        for module in self.acoustic_encoder.modules():
            if isinstance(module, nn.Conv1d):
                (kernel,), (stride,), (dilation,) = module.kernel_size, module.stride, module.dilation
                frames = (frames + 2 * int(module.padding[0]) - dilation * (kernel - 1) - 1) // stride + 1
        if frames != semantic.shape[2]:
            sound = functional.pad(sound, (self.config.hop // 2, self.config.hop // 2))
        both = torch.cat([self.acoustic_encoder(sound), semantic], dim=1)
        return self.fc(both.transpose(1, 2)).transpose(1, 2)

    def forward(self, samples: Tensor) -> Tensor:
        left, codes = self.embedded(samples).transpose(1, 2), []
        for codebook in self.quantizer.quantizers:
            codes.append(codebook.nearest(left))
            left = left - codebook(codes[-1])
        return torch.stack(codes, dim=1)
