"""Vocos: log-mel frames to audio by a ConvNeXt stack and an inverse short-time Fourier transform.

Siuzdak, "Vocos: Closing the gap between time-domain and Fourier-based neural vocoders" (arXiv 2306.00814). Loads
``charactr/vocos-mel-24khz`` under its official names: ``config.yaml`` next to ``pytorch_model.bin`` or
``model.safetensors``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.errors import CheckpointError
from paretone.models.files.checkpoints import loaded_strictly, read_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.kernels.products import PackableLinear, packed
from paretone.models.networks.shapes import Modules
from paretone.observer import Check

WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True)
class VocosConfig:
    """Sizes of a Vocos, from its ``config.yaml``."""

    bands: int = 100
    width: int = 512
    inner_width: int = 1536
    layers: int = 8
    window: int = 1024
    hop: int = 256
    sample_rate: int = 24000

    @classmethod
    def read(cls, path: Path) -> VocosConfig:
        """Read an official ``config.yaml``. Raises :class:`CheckpointError` with the field."""
        file = ConfigFile.read(path)
        parts = (file.part(name, needed=True) for name in ("feature_extractor", "backbone", "head"))
        features, backbone, head = (one.part("init_args", needed=True) for one in parts)
        head.require("padding", "center", "center")
        if backbone.entries.get("adanorm_num_embeddings"):
            raise CheckpointError(
                f"{backbone.where}: a Vocos for EnCodec tokens (adanorm_num_embeddings) decodes no mel spectrograms."
            )
        sizes = cls(
            bands=backbone.number("input_channels"),
            width=backbone.number("dim"),
            inner_width=backbone.number("intermediate_dim"),
            layers=backbone.number("num_layers"),
            window=head.number("n_fft"),
            hop=head.number("hop_length"),
            sample_rate=features.number("sample_rate"),
        )
        if sizes.window % 2 or sizes.hop > sizes.window:
            raise CheckpointError(
                f"{head.where}: n_fft {sizes.window} should be even and no less than hop_length {sizes.hop}."
            )
        return sizes


class ConvNeXtBlock(nn.Module):
    """Depth-wise convolution over time, then two linear layers over channels, scaled and added to the input."""

    def __init__(self, width: int, inner_width: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.dwconv = nn.Conv1d(width, width, kernel_size=7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.pwconv1 = PackableLinear(width, inner_width)
        self.pwconv2 = PackableLinear(inner_width, width)
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, width, frames) to the same shape."""
        return self.added(x, self.dwconv(x))

    def added(self, x: Tensor, convolved: Tensor) -> Tensor:
        """``x`` plus the block's output for its convolution."""
        hidden = self.norm(convolved.transpose(1, 2))
        hidden = self.pwconv2(functional.gelu(self.pwconv1(hidden)))
        return x + (self.gamma * hidden).transpose(1, 2)


class VocosBackbone(nn.Module):
    """Mel frames to hidden frames at the same rate."""

    def __init__(self, config: VocosConfig) -> None:
        super().__init__()
        self.embed = nn.Conv1d(config.bands, config.width, kernel_size=7, padding=3)
        self.norm = nn.LayerNorm(config.width, eps=1e-6)
        self.convnext = Modules(ConvNeXtBlock(config.width, config.inner_width) for _ in range(config.layers))
        self.final_layer_norm = nn.LayerNorm(config.width, eps=1e-6)

    def forward(self, mel: Tensor) -> Tensor:
        """(B, bands, frames) to (B, frames, width)."""
        x = self.norm(self.embed(mel).transpose(1, 2)).transpose(1, 2)
        for block in self.convnext:
            x = block(x)
        return self.final_layer_norm(x.transpose(1, 2))


class InverseTransform(nn.Module):
    """Overlap-add synthesis with centred frames; the window is part of the checkpoint."""

    window: Tensor

    def __init__(self, window: int, hop: int) -> None:
        super().__init__()
        self.hop = hop
        self.register_buffer("window", torch.hann_window(window))

    def forward(self, spectrum: Tensor) -> Tensor:
        """(B, window // 2 + 1, frames) complex to (B, (frames - 1) · hop)."""
        return torch.istft(spectrum, len(self.window), self.hop, window=self.window, center=True)


class FourierHead(nn.Module):
    """Hidden frames to log magnitude and phase, and on to audio."""

    def __init__(self, config: VocosConfig) -> None:
        super().__init__()
        self.out = PackableLinear(config.width, config.window + 2)
        self.istft = InverseTransform(config.window, config.hop)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, frames, width) to (B, samples)."""
        log_magnitude, phase = self.out(hidden).transpose(1, 2).chunk(2, dim=1)
        magnitude = log_magnitude.exp().clip(max=100.0)  # As in the official head.
        return self.istft(magnitude * (torch.cos(phase) + 1j * torch.sin(phase)))


class Vocos(nn.Module):
    """The vocoder, always in float32: half precision is audible in the phases."""

    def __init__(self, config: VocosConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = VocosBackbone(config)
        self.head = FourierHead(config)

    @torch.inference_mode()
    def decode(self, mel: Tensor) -> Tensor:
        """Audio of a natural-log mel spectrogram: (B, bands, frames) to (B, (frames - 1) · hop) float32."""
        return self.head(self.backbone(mel.float()))

    @classmethod
    def load(cls, folder: Path, device: torch.device | str = "cpu", check: Check = lambda: None) -> Vocos:
        """Load an official folder. ``check`` is called between the parts and may raise to cancel. Raises
        :class:`CheckpointError` that names the file and its fault."""
        config = VocosConfig.read(folder / "config.yaml")
        path = next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)
        if path is None:
            raise CheckpointError(f"{folder} holds no Vocos weights; put {WEIGHT_FILES[1]} there.")
        check()
        # The feature extractor is not needed for decoding.
        weights = {key: value for key, value in read_weights(path).items() if not key.startswith("feature_extractor.")}
        model = loaded_strictly(lambda: cls(config), weights, str(path))
        check()
        return packed(model.to(device))


# --- In pieces --------------------------------------------------------------------------------------------------------
# Streamed results equal those of one run exactly. A convolution that looks ahead delays its output; the inputs that it
# still needs are kept. Both ends get the same zeros as one run, before each convolution. Nothing is computed twice.
class StreamedConvolution:
    """A convolution over time with an odd kernel, stride 1 and zero padding that keeps the length."""

    def __init__(self, convolution: nn.Conv1d) -> None:
        self._convolution = convolution
        self._reach = convolution.kernel_size[0] // 2
        """Delay: distance from an output to the last input that it depends on."""
        if convolution.padding != (self._reach,) or convolution.stride != (1,):
            raise ValueError(f"{convolution} does not keep the length, or takes other steps than 1.")
        self._kept = self._zeros()

    def push(self, x: Tensor) -> Tensor:
        """(1, channels, n) to the output that is now final, (1, channels', m)."""
        known = torch.cat([self._kept, x], dim=2)
        taps = 2 * self._reach
        self._kept = known[:, :, max(known.shape[2] - taps, 0) :]
        if known.shape[2] <= taps:
            return x.new_zeros(1, self._convolution.out_channels, 0)
        weights = self._convolution
        return functional.conv1d(known, weights.weight, weights.bias, groups=weights.groups)

    def finish(self) -> Tensor:
        """The remaining output, (1, channels', m)."""
        return self.push(self._zeros())

    def _zeros(self) -> Tensor:
        return self._convolution.weight.new_zeros(1, self._convolution.in_channels, self._reach)


class StreamedBlock:
    def __init__(self, block: ConvNeXtBlock) -> None:
        self._block = block
        self._convolution = StreamedConvolution(block.dwconv)
        self._waiting = block.dwconv.weight.new_zeros(1, block.dwconv.in_channels, 0)
        """Inputs without final outputs."""

    def push(self, x: Tensor) -> Tensor:
        """(1, width, n) to (1, width, m)."""
        self._waiting = torch.cat([self._waiting, x], dim=2)
        return self._added(self._convolution.push(x))

    def finish(self) -> Tensor:
        return self._added(self._convolution.finish())

    def _added(self, convolved: Tensor) -> Tensor:
        count = convolved.shape[2]
        if not count:
            return convolved
        x, self._waiting = self._waiting[:, :, :count], self._waiting[:, :, count:]
        return self._block.added(x, convolved)


class StreamedBlocks:
    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        """``blocks``: those of a network, each a :class:`ConvNeXtBlock`."""
        self._blocks = [StreamedBlock(cast("ConvNeXtBlock", block)) for block in blocks]

    def push(self, x: Tensor) -> Tensor:
        """(1, width, n) to (1, width, m)."""
        for block in self._blocks:
            x = block.push(x)
        return x

    def finish(self) -> Tensor:
        """The remaining output, (1, width, m): each block ends after the previous one."""
        x = self._blocks[0].finish()
        for block in self._blocks[1:]:
            x = torch.cat([block.push(x), block.finish()], dim=2)
        return x


class StreamedOverlapAdd:
    """The inverse short-time Fourier transform with centred frames."""

    def __init__(self, window: Tensor, hop: int, tail: int = 0) -> None:
        """``tail``: hops to return after the middle of the last frame."""
        self._window, self._hop, self._tail = window, hop, tail
        self._parts = len(window) // hop
        if self._parts * hop != len(window) or self._parts % 2:
            raise ValueError(f"A window of {len(window)} samples is not an even number of hops of {hop}.")
        self._sum, self._envelope = (window.new_zeros(self._parts - 1, hop) for _ in range(2))
        """Partial sums of hops that later frames add to."""
        self._frames = 0

    def push(self, spectrum: Tensor) -> Tensor:
        """(1, window // 2 + 1, n) complex to the samples (m,) that are now final."""
        count = spectrum.shape[2]
        if not count:
            return self._sum.new_zeros(0)
        frames = torch.fft.irfft(spectrum[0].mT, len(self._window)) * self._window
        rest = self._sum.new_zeros(count, self._hop)
        total, envelope = torch.cat([self._sum, rest]), torch.cat([self._envelope, rest])
        for part in range(self._parts):
            columns = slice(part * self._hop, (part + 1) * self._hop)
            total[part : part + count] += frames[:, columns]
            envelope[part : part + count] += self._window[columns] ** 2
        self._sum, self._envelope = total[count:], envelope[count:]
        # Half of the first window precedes the first sample.
        first = max(self._parts // 2 - self._frames, 0)
        self._frames += count
        return (total[first:count] / envelope[first:count]).flatten()

    def finish(self) -> Tensor:
        """Samples up to the middle of the last frame, and the tail after it, (m,)."""
        last = max(self._parts // 2 - 1 + self._tail, 0) if self._frames else 0
        first = min(max(self._parts // 2 - self._frames, 0), last)
        return (self._sum[first:last] / self._envelope[first:last]).flatten()
