"""Qwen3-TTS's speaker encoder: the mel of a recording to an embedding in the talker's width.

ECAPA-TDNN (Desplanques et al., arXiv 2005.07143) without batch norms. Official names: ``Qwen3TTSSpeakerEncoder`` of
``core/models/modeling_qwen3_tts.py``, ``qwen-tts`` 0.1.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.audio.mel import BIGVGAN, MelFrontEnd
from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.layers import Residual
from paretone.models.networks.shapes import Modules

SAMPLE_RATE = 24000
MEL = MelFrontEnd(BIGVGAN, SAMPLE_RATE, window=1024, hop=256, bands=128)


@dataclass(frozen=True)
class SpeakerConfig:
    """Sizes; the defaults are the releases', but for ``width``, which is the talker's."""

    width: int = 1024
    bands: int = 128
    channels: tuple[int, ...] = (512, 512, 512, 512, 1536)
    kernels: tuple[int, ...] = (5, 3, 3, 3, 1)
    dilations: tuple[int, ...] = (1, 2, 3, 4, 1)
    attention: int = 128
    scale: int = 8
    """Parts of a block's channels."""
    squeezed: int = 128

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> SpeakerConfig:
        """Read ``speaker_encoder_config``. Raises :class:`paretone.errors.CheckpointError`."""
        file = ConfigFile.of(config, "The config.json of Qwen3-TTS")
        usual = cls()
        return cls(
            width=file.number("enc_dim", usual.width),
            bands=file.number("mel_dim", usual.bands),
            channels=file.numbers("enc_channels", usual.channels),
            kernels=file.numbers("enc_kernel_sizes", usual.kernels),
            dilations=file.numbers("enc_dilations", usual.dilations),
            attention=file.number("enc_attention_channels", usual.attention),
            scale=file.number("enc_res2net_scale", usual.scale),
            squeezed=file.number("enc_se_channels", usual.squeezed),
        )


class TimeDelay(nn.Module):
    """A convolution of the same length with reflected ends, then ReLU: (B, inputs, n) to (B, outputs, n)."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        both = self.conv.dilation[0] * (self.conv.kernel_size[0] - 1)
        return F.relu(self.conv(F.pad(x, (both // 2, both - both // 2), "reflect")))


class Res2Net(nn.Module):
    """Parts of the channels, each convolved with what the one before it gave."""

    def __init__(self, channels: int, scale: int, kernel: int, dilation: int) -> None:
        super().__init__()
        part = channels // scale
        self.blocks = Modules(TimeDelay(part, part, kernel, dilation) for _ in range(scale - 1))

    def forward(self, x: Tensor) -> Tensor:
        first, *rest = x.chunk(len(self.blocks) + 1, dim=1)
        parts = [first]
        for number, (block, part) in enumerate(zip(self.blocks, rest, strict=True)):
            parts.append(block(part + parts[-1] if number else part))
        return torch.cat(parts, dim=1)


class Squeeze(nn.Module):
    """A gate per channel from the channels' means."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(channels, inner, 1)
        self.conv2 = nn.Conv1d(inner, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.conv2(F.relu(self.conv1(x.mean(dim=2, keepdim=True)))).sigmoid()


class SpeakerBlock(Residual):
    def __init__(self, config: SpeakerConfig, number: int) -> None:
        super().__init__()
        inputs, outputs = config.channels[number - 1], config.channels[number]
        self.tdnn1 = TimeDelay(inputs, outputs, 1)
        self.res2net_block = Res2Net(outputs, config.scale, config.kernels[number], config.dilations[number])
        self.tdnn2 = TimeDelay(outputs, outputs, 1)
        self.se_block = Squeeze(outputs, config.squeezed)


class AttentivePooling(nn.Module):
    """Means and deviations over time, weighted by attention: (B, channels, n) to (B, 2 · channels, 1)."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.tdnn = TimeDelay(3 * channels, inner, 1)
        self.conv = nn.Conv1d(inner, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        even = x.new_full((1, 1, x.shape[-1]), 1 / x.shape[-1])
        about = [one.expand_as(x) for one in _statistics(x, even)]
        weights = self.conv(self.tdnn(torch.cat([x, *about], dim=1)).tanh()).softmax(dim=2)
        return torch.cat(_statistics(x, weights), dim=1)


def _statistics(x: Tensor, weights: Tensor) -> list[Tensor]:
    """Weighted mean and deviation of (B, channels, n), each (B, channels, 1)."""
    mean = (weights * x).sum(dim=2, keepdim=True)
    deviation = (weights * (x - mean).square()).sum(dim=2, keepdim=True).clamp(min=1e-12).sqrt()
    return [mean, deviation]


class SpeakerEncoder(nn.Module):
    def __init__(self, config: SpeakerConfig = SpeakerConfig()) -> None:
        super().__init__()
        first, *middle, last = config.channels
        blocks = (SpeakerBlock(config, number + 1) for number in range(len(middle)))
        self.blocks = nn.ModuleList([TimeDelay(config.bands, first, config.kernels[0], config.dilations[0]), *blocks])
        self.mfa = TimeDelay(sum(middle), last, config.kernels[-1], config.dilations[-1])
        self.asp = AttentivePooling(last, config.attention)
        self.fc = nn.Conv1d(2 * last, config.width, 1)

    def forward(self, mel: Tensor) -> Tensor:
        """Mel (B, frames, bands) to embeddings (B, width), not normalised."""
        x, found = mel.mT, []
        for block in self.blocks:
            x = block(x)
            found.append(x)
        return self.fc(self.asp(self.mfa(torch.cat(found[1:], dim=1))))[..., 0]

    @torch.inference_mode()
    def of(self, samples: Tensor) -> Tensor:
        """Embedding (width,) of samples (n,) at 24 kHz. Raises :class:`paretone.errors.AudioError` if too short."""
        return cast("Tensor", self(MEL(samples)))[0]
