"""From the mel of the official F5-TTS layout to voice frames: ConvNeXt blocks that read off what a decoder of natural
speech needs. With that decoder after them they are a vocoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from paretone.models.files.checkpoints import loaded_strictly, read_float_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.minis.natural.frame_rates import at_latent_frames, latent_frames
from paretone.models.minis.natural.layout import VOICE
from paretone.models.networks.quantised_mel import MelStatistics
from paretone.models.networks.vocos import VocosBackbone, VocosConfig

CONFIG_FILE, WEIGHT_FILE = "config.json", "model.safetensors"


@dataclass(frozen=True)
class MelReaderConfig:
    """Sizes of the network."""

    bands: int = 100
    width: int = 256
    inner_width: int = 768
    layers: int = 5


class MelReader(MelStatistics):
    """The network."""

    def __init__(self, config: MelReaderConfig = MelReaderConfig()) -> None:
        super().__init__(config.bands)
        self.config = config
        self.backbone = VocosBackbone(VocosConfig(config.bands, config.width, config.inner_width, config.layers))
        self.out = nn.Linear(config.width, VOICE)

    def forward(self, mel: Tensor) -> Tensor:
        """Log mel (B, bands, frames) to voice frames (B, latent frames, 36)."""
        return self.read(at_latent_frames(mel, 0, latent_frames(mel.shape[2])))

    def read(self, mel: Tensor) -> Tensor:
        """The same of a log mel that is at the latent frames already, (B, bands, n) to (B, n, 36)."""
        return self.out(self.backbone(self.normalised(mel.mT).mT))

    @classmethod
    def load(cls, folder: Path, device: torch.device | str = "cpu") -> MelReader:
        """Load an exported folder, in float32. Raises :class:`CheckpointError` that names the file at fault."""
        sizes = ConfigFile.read(folder / CONFIG_FILE).part("mel_reader").sizes(MelReaderConfig)
        path = folder / WEIGHT_FILE
        model = loaded_strictly(lambda: cls(sizes), read_float_weights(path), str(path))
        return model.eval().requires_grad_(False).to(device)
