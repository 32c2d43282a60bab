"""Vocos: log-mel frames to audio by a ConvNeXt stack and an inverse short-time Fourier transform.

Siuzdak, "Vocos: Closing the gap between time-domain and Fourier-based neural vocoders" (arXiv 2306.00814). Loads
``charactr/vocos-mel-24khz`` by its own names: ``config.yaml`` next to ``pytorch_model.bin`` or ``model.safetensors``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.errors import CheckpointError
from paretone.models.files.checkpoints import load_strictly, read_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.shapes import Modules, uninitialised

PARTS = "feature_extractor", "backbone", "head"
"""Those of an official ``config.yaml``, each with its ``init_args``."""
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
LARGEST_MAGNITUDE = 100.0
"""Spectral magnitudes are clipped here, as in the official head."""


@dataclass(frozen=True)
class VocosConfig:
    """Sizes of a Vocos, as its ``config.yaml`` gives them."""

    bands: int = 100
    width: int = 512
    inner_width: int = 1536
    layers: int = 8
    window: int = 1024
    hop: int = 256
    sample_rate: int = 24000

    @classmethod
    def read(cls, path: Path) -> VocosConfig:
        """Read an official ``config.yaml``.

        Raises :class:`CheckpointError` that names what is missing or unsupported.
        """
        file = ConfigFile.read(path)
        return cls._of({name: file.part(name, needed=True).part("init_args", needed=True) for name in PARTS})

    @classmethod
    def from_parts(cls, parts: Mapping[str, Mapping]) -> VocosConfig:
        """From the arguments of :data:`PARTS` under their official names."""
        return cls._of({name: ConfigFile(parts[name], name) for name in PARTS})

    @classmethod
    def _of(cls, parts: Mapping[str, ConfigFile]) -> VocosConfig:
        features, backbone, head = (parts[name] for name in PARTS)
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
        self.pwconv1 = nn.Linear(width, inner_width)
        self.pwconv2 = nn.Linear(inner_width, width)
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, width, frames) to the same shape."""
        return self.added(x, self.dwconv(x))

    def added(self, x: Tensor, convolved: Tensor) -> Tensor:
        """``x`` with what follows from its convolution added."""
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

    def __init__(self, config: VocosConfig) -> None:
        super().__init__()
        self.hop = config.hop
        self.register_buffer("window", torch.hann_window(config.window))

    def forward(self, spectrum: Tensor) -> Tensor:
        """(B, window // 2 + 1, frames) complex to (B, (frames - 1) · hop)."""
        return torch.istft(spectrum, len(self.window), self.hop, window=self.window, center=True)


class FourierHead(nn.Module):
    """Hidden frames to log magnitude and phase, and those to audio."""

    def __init__(self, config: VocosConfig) -> None:
        super().__init__()
        self.out = nn.Linear(config.width, config.window + 2)
        self.istft = InverseTransform(config)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, frames, width) to (B, samples)."""
        return self.istft(self.spectrum(hidden))

    def spectrum(self, hidden: Tensor) -> Tensor:
        """(B, frames, width) to (B, window // 2 + 1, frames) complex."""
        log_magnitude, phase = self.out(hidden).transpose(1, 2).chunk(2, dim=1)
        magnitude = log_magnitude.exp().clip(max=LARGEST_MAGNITUDE)
        return magnitude * (torch.cos(phase) + 1j * torch.sin(phase))


class Vocos(nn.Module):
    """The decoder. Always float32: half precision is audible in the phases."""

    def __init__(self, config: VocosConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = VocosBackbone(config)
        self.head = FourierHead(config)

    @torch.inference_mode()
    def decode(self, mel: Tensor) -> Tensor:
        """Audio of a natural-log mel spectrogram: (B, bands, frames) to (B, (frames - 1) · hop) float32."""
        return self.head(self.backbone(mel.float()))

    def load_official(self, weights: dict[str, Tensor], where: str) -> None:
        """Take official weights, strictly; those of the feature extractor, not needed for decoding, are left out."""
        needed = {key: value for key, value in weights.items() if not key.startswith("feature_extractor.")}
        load_strictly(self, needed, where)

    @classmethod
    def load(
        cls,
        folder: Path,
        device: torch.device | str = "cpu",
        check: Callable[[], None] = lambda: None,
    ) -> Vocos:
        """Load an official folder. ``check`` is called between the parts and may raise to cancel.

        Raises :class:`CheckpointError` that names the file and what is wrong with it.
        """
        config = VocosConfig.read(folder / "config.yaml")
        path = next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)
        if path is None:
            raise CheckpointError(f"{folder} holds no Vocos weights; put {WEIGHT_FILES[1]} there.")
        check()
        weights = read_weights(path)
        with uninitialised(weights, str(path)):
            model = cls(config)
        model.load_official(weights, str(path))
        check()
        return model.eval().requires_grad_(False).to(device)
