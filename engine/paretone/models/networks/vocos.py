"""Vocos: log-mel frames to audio by a ConvNeXt stack and an inverse short-time Fourier transform.

Siuzdak, "Vocos: Closing the gap between time-domain and Fourier-based neural vocoders" (arXiv 2306.00814). Loads
``charactr/vocos-mel-24khz`` under its official names: ``config.yaml`` next to ``pytorch_model.bin`` or
``model.safetensors``.
"""

from __future__ import annotations

import functools
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
from paretone.models.kernels.few_rows import Product, product
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
        return self.added(x.mT, self.dwconv(x).mT, self.pwconv1, self.pwconv2).mT

    def added(self, x: Tensor, convolved: Tensor, wide: Product, narrow: Product) -> Tensor:
        """``x`` (…, frames, width) plus the block's output for its convolution, by the products of its two layers."""
        return torch.addcmul(x, self.gamma, narrow(functional.gelu(wide(self.norm(convolved)))))

    @functools.cached_property
    def products(self) -> tuple[Product, Product]:
        """Its layers for few rows, whose weights do not change any more: without oneDNN's 0.6 ms for each new number of
        rows."""
        wide, narrow = (product(one.weight.detach(), one.bias.detach()) for one in (self.pwconv1, self.pwconv2))
        return wide, narrow


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
# Streamed results equal those of one run up to rounding. A convolution that looks ahead delays its output; the inputs
# that it still needs are kept. Both ends get the same zeros as one run, before each convolution. Nothing is computed
# twice.
class StreamedBlock:
    def __init__(self, block: ConvNeXtBlock) -> None:
        self._block, weight, bias = block, block.dwconv.weight, block.dwconv.bias
        assert bias is not None
        self._bias = bias
        self._taps = weight[:, 0].mT.contiguous()
        self._ends = weight.new_zeros(len(self._taps) // 2, weight.shape[0])
        self._known = self._ends
        """Inputs that later outputs depend on."""

    def push(self, x: Tensor, last: bool) -> Tensor:
        """(n, width) to the output that is now final, (m, width)."""
        known, reach = torch.cat([self._known, x, self._ends] if last else [self._known, x]), len(self._ends)
        count = max(len(known) - 2 * reach, 0)
        self._known = known[count:]
        if not count:
            return known[:0]
        # Rows times weights take less than half of the time of torch's convolution, which transposes them.
        convolved = self._bias.repeat(count, 1)
        for place, tap in enumerate(self._taps):
            convolved.addcmul_(known[place : place + count], tap)
        return self._block.added(known[reach : reach + count], convolved, *self._block.products)


class StreamedBlocks:
    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        """``blocks``: those of a network, each a :class:`ConvNeXtBlock`."""
        self._blocks = [StreamedBlock(cast("ConvNeXtBlock", block)) for block in blocks]

    def push(self, x: Tensor, last: bool = False) -> Tensor:
        """Next rows (n, width), with ``last`` the last ones, possibly none, to the final output (m, width)."""
        for block in self._blocks:
            x = block.push(x, last)
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

    def push(self, spectrum: Tensor, last: bool = False) -> Tensor:
        """(n, window // 2 + 1) complex, with ``last`` the last ones, to the samples (m,) that are now final: then up to
        the middle of the last frame, and the tail after it."""
        count = len(spectrum)
        frames = torch.fft.irfft(spectrum, len(self._window)) * self._window
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
        end = count + (max(self._parts // 2 - 1 + self._tail, 0) if last else 0)
        return (total[first:end] / envelope[first:end]).flatten()
