"""Higgs Audio v2's codec, from codes to speech: eight residual codebooks at 25 frames a second, a DAC decoder without
its final tanh.

A frame's codes reach ten frames to either side and no further, so speech that is decoded in windows with as much
context them is that of all codes at once, at a cost that does not depend on how much came before.

Source: ``modeling_higgs_audio_v2_tokenizer.py`` and ``modeling_dac.py`` of transformers 5.18, whose names the modules
bear; DAC, Kumar et al., arXiv 2306.06546.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from paretone.models.families.passages import Decoded
from paretone.models.families.token_decoder import GridDecoder
from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.modules import Modules

DILATIONS = (1, 3, 9)
"""Dilations of the three residual units of a block."""
KERNEL = 7
_AROUND = KERNEL // 2 * sum(DILATIONS)
"""Positions to either side that a block's residual units look at."""


@dataclass(frozen=True)
class HiggsConfig:
    """Sizes of the codec, as its ``config.json`` has them."""

    sample_rate: int
    ratios: tuple[int, ...]
    """Factor by which each block of the decoder stretches time."""
    downsampling: tuple[int, ...]
    """Factor by which each block of the encoder shortens time."""
    latent: int
    """Channels of what the decoder is given."""
    decoder_width: int
    encoder_width: int
    semantic_width: int
    codebook_size: int
    codebook_width: int
    bandwidth: float
    """Kilobits a second, the most that the release was made for."""
    kernel: int
    """Kernel size of the semantic encoder's convolutions."""
    strides: tuple[int, ...]
    channel_ratios: tuple[float, ...]
    block_dilations: tuple[int, ...]
    unit_kernel: int
    semantic_rate: int
    semantic: Mapping
    """Configuration of HuBERT."""

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> HiggsConfig:
        """From the codec's ``config.json``. Raises :class:`CheckpointError` that names what is missing."""
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
        """Samples of a frame."""
        return math.prod(self.ratios)

    @property
    def frame_rate(self) -> float:
        """Frames a second."""
        return self.sample_rate / self.hop

    @property
    def width(self) -> int:
        """Channels of what is quantised."""
        return self.latent + self.semantic_width

    @property
    def codebooks(self) -> int:
        """Number of codebooks of the bandwidth."""
        frames = math.ceil(self.sample_rate / self.hop)
        return max(1, math.floor(self.bandwidth / (math.log2(self.codebook_size) * frames / 1000)))


RELEASED = HiggsConfig(
    sample_rate=24000,
    ratios=(8, 5, 4, 2, 3),
    downsampling=(8, 5, 4, 2, 3),
    latent=256,
    decoder_width=1024,
    encoder_width=64,
    semantic_width=768,
    codebook_size=1024,
    codebook_width=64,
    bandwidth=2.0,
    kernel=3,
    strides=(1, 1),
    channel_ratios=(1, 1),
    block_dilations=(1, 1),
    unit_kernel=3,
    semantic_rate=16000,
    semantic={},
)
"""Configuration of the release without HuBERT's own sizes, for benches and tests of its size."""


class Snake(nn.Module):
    """``x + sin²(αx) / α`` with an α for every channel (Ziyin et al., arXiv 2006.08195)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addcdiv(x, (x * self.alpha).sin().square(), self.alpha + 1e-9)


class ResidualUnit(nn.Module):
    """A dilated convolution and a plain one, added to their input; (B, channels, n)."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.snake1 = Snake(channels)
        self.conv1 = nn.Conv1d(channels, channels, KERNEL, dilation=dilation, padding=KERNEL // 2 * dilation)
        self.snake2 = Snake(channels)
        self.conv2 = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(self.snake2(self.conv1(self.snake1(x))))


class DecoderBlock(nn.Module):
    """Stretches time by ``ratio`` and halves the channels."""

    def __init__(self, channels: int, ratio: int) -> None:
        super().__init__()
        self.snake1 = Snake(channels)
        self.conv_t1 = nn.ConvTranspose1d(
            channels, channels // 2, 2 * ratio, ratio, math.ceil(ratio / 2), output_padding=ratio % 2
        )
        for number, dilation in enumerate(DILATIONS, 1):
            setattr(self, f"res_unit{number}", ResidualUnit(channels // 2, dilation))

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_t1(self.snake1(x))
        for number in range(1, len(DILATIONS) + 1):
            x = getattr(self, f"res_unit{number}")(x)
        return x


class AcousticDecoder(nn.Module):
    """(B, latent, frames) to (B, 1, samples)."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__()
        width = config.decoder_width
        self.conv1 = nn.Conv1d(config.latent, width, KERNEL, padding=KERNEL // 2)
        self.block = Modules(DecoderBlock(width >> index, ratio) for index, ratio in enumerate(config.ratios))
        width >>= len(config.ratios)
        self.snake1 = Snake(width)
        self.conv2 = nn.Conv1d(width, 1, KERNEL, padding=KERNEL // 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        for block in self.block:
            x = block(x)
        return self.conv2(self.snake1(x))


class Entries(nn.Module):
    """Vectors of a codebook's codes, (codes, width)."""

    embed: Tensor

    def __init__(self, codes: int, width: int) -> None:
        super().__init__()
        self.register_buffer("embed", torch.zeros(codes, width))


class Codebook(nn.Module):
    """Entries, and how they are projected into what is quantised."""

    def __init__(self, config: HiggsConfig) -> None:
        super().__init__()
        self.codebook = Entries(config.codebook_size, config.codebook_width)
        self.project_out = nn.Linear(config.codebook_width, config.width)

    def forward(self, codes: Tensor) -> Tensor:
        """Codes (B, frames) to (B, frames, width); indices without an entry, such as a mask, add nothing."""
        entries = self.codebook.embed
        found = self.project_out(nn.functional.embedding(codes.clamp(max=len(entries) - 1), entries))
        return found.masked_fill((codes >= len(entries))[..., None], 0.0)


Kind = TypeVar("Kind", bound=Codebook)


class Quantizer(nn.Module, Generic[Kind]):
    """All codebooks, in their order."""

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
    """Number of frames before and after its own that a frame's samples depend on."""
    first, last = 0, math.prod(ratios) - 1
    first, last = first - KERNEL // 2, last + KERNEL // 2
    for ratio in reversed(ratios):
        first, last = first - _AROUND, last + _AROUND
        padding = math.ceil(ratio / 2)
        # Input i of a transposed convolution adds to the outputs from i · ratio − padding on, 2 · ratio of them.
        first, last = math.ceil((first + padding - 2 * ratio + 1) / ratio), (last + padding) // ratio
    return -(first - KERNEL // 2), last + KERNEL // 2


class WindowedHiggs(GridDecoder):
    """The codes of one passage to speech, window by window."""

    def __init__(self, codec: HiggsDecoder) -> None:
        self._codec = codec
        self._before, self._after = reach(codec.config.ratios)
        self._codes: Tensor | None = None
        """Those that further speech depends on."""
        self._heard = 0
        """Number of frames already decoded."""

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
        """The speech of the frames of ``codes`` that were not heard yet, up to ``end``; keeps what further speech
        depends on."""
        self._codes = codes
        if end <= self._heard:
            return np.zeros(0, np.float32)
        hop = self._codec.config.hop
        samples = self._codec(codes[None])[0, self._heard * hop : end * hop].cpu().numpy()
        gone = max(end - self._before, 0)
        self._codes, self._heard = codes[:, gone:], end - gone
        return samples
