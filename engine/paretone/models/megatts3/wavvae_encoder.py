"""The half of WavVAE that the official release withholds: audio to latents, for users who have its weights.

Official layout (``tts/modules/wavvae/decoder/seanet_encoder.py``): a SEANet encoder as in EnCodec (Défossez et al.,
arXiv 2210.13438) with strides 2, 4, 4, 5 and 6, a two-layer LSTM, and a linear layer to means and log variances.
No official weights exist to compare with: names, shapes and structure follow the released code.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.errors import CheckpointError

LATENT_CHANNELS = 32
PARTS = ("encoder.", "proj_to_z.")
"""Prefixes of an encoder's weights, in a file that may hold a decoder as well."""
FIRST_BIAS, LAST_WEIGHT = "encoder.encoder.model.0.conv.conv.bias", "proj_to_z.weight"
STRIDES = (2, 4, 4, 5, 6)
LOG_VARIANCE = (-30.0, 20.0)
"""Bounds that log variances are clamped to."""


class PaddedConv1d(nn.Module):
    """A convolution that reflects its input at the ends so that every ``stride`` samples give one, rounded up."""

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
        # Reflection needs more samples than it adds: short inputs are first continued by silence, which is cut again.
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
    """A two-layer LSTM over time, added to its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(channels, channels, num_layers=2)

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, n) to the same shape."""
        return x + self.lstm(x.permute(2, 0, 1))[0].permute(1, 2, 0)


class SEANet(nn.Module):
    """The encoder proper."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [PaddedConv1d(1, channels, 7)]
        for stride in STRIDES:
            layers += [ResidualBlock(channels), nn.ELU(), PaddedConv1d(channels, 2 * channels, 2 * stride, stride)]
            channels *= 2
        layers += [ResidualLSTM(channels), nn.ELU(), PaddedConv1d(channels, width, 7)]
        self.model = nn.Sequential(*layers)


class Encoder(nn.Module):
    """Audio of 24 kHz to hidden frames of 25 Hz."""

    def __init__(self, channels: int = 32, width: int = 512) -> None:
        super().__init__()
        self.width = width
        self.encoder = SEANet(channels, width)

    def forward(self, samples: Tensor) -> Tensor:
        """(B, n) to (B, width, ceil(n / 960))."""
        return self.encoder.model(samples.unsqueeze(1))

    @classmethod
    def of_weights(cls, weights: Mapping[str, Tensor], where: str) -> Encoder | None:
        """An encoder of the size that official tensors have, or ``None`` if there are none of an encoder.

        Raises :class:`CheckpointError` when those by which its size is known are missing.
        """
        if not any(name.startswith(PARTS) for name in weights):
            return None
        try:
            channels, width = weights[FIRST_BIAS].shape[0], weights[LAST_WEIGHT].shape[1]
        except KeyError as error:
            raise CheckpointError(f"{where} has an encoder that is not complete: it lacks {error.args[0]}.") from None
        return cls(channels, width)


def sampled_latents(moments: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One draw from the posterior: mean + exp(log variance / 2) · ε; (B, T, 64) to (B, T, 32).

    ``generator`` draws ε on the CPU, in the order (B, 32, T) as upstream; without one the global generator does.
    """
    mean, log_variance = moments.chunk(2, dim=-1)
    batch, frames, channels = mean.shape
    noise = torch.randn((batch, channels, frames), generator=generator).transpose(1, 2)
    return mean + torch.exp(0.5 * log_variance.clamp(*LOG_VARIANCE)) * noise.to(mean.device)
