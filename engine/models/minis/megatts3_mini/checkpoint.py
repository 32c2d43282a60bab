"""The folder of the bundled MegaTTS 3, part by part: the official layout as far as it applies.

=========================  ===========================================================================
``diffusion_transformer``    ``config.yaml``, ``model.safetensors`` (float16, official names)
``wavvae``                   ``config.yaml``, ``mel_codec.safetensors``; see :mod:`engine.models.minis.megatts3_mini.mel_codec`
``durations.json``           mean durations of phones, in place of the official duration model
=========================  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.front_end.durations import DurationTable
from engine.models.files.checkpoints import load_strictly, read_weights
from engine.models.megatts3.checkpoint import TRANSFORMER, WAVVAE
from engine.models.megatts3.config import DiTConfig
from engine.models.megatts3.dit import MegaDiT
from engine.models.minis.megatts3_mini.mel_codec import MelCodec

WEIGHTS = "model.safetensors"
DURATIONS = "durations.json"


@dataclass(frozen=True)
class BundledFolder:
    """A folder of this layout. Every method that reads raises :class:`engine.errors.CheckpointError`, and calls
    ``check`` now and then, which may raise to cancel."""

    root: Path
    check: Callable[[], None] = lambda: None

    @classmethod
    def is_at(cls, root: Path) -> bool:
        """Whether ``root`` has this layout and not the official one."""
        return cls(root).backbone_path.is_file()

    @property
    def backbone_path(self) -> Path:
        """The weight file by which the model is told from others."""
        return self.root / TRANSFORMER / WEIGHTS

    def backbone(self) -> MegaDiT:
        """The diffusion transformer, float32."""
        where = str(self.backbone_path)
        weights = {name: value.float() for name, value in read_weights(self.backbone_path, self.check).items()}
        model = MegaDiT(DiTConfig.from_shapes({name: tuple(one.shape) for name, one in weights.items()}, where))
        load_strictly(model, weights, where)
        return model.eval().requires_grad_(False)

    def codec(self, device: torch.device | str = "cpu") -> MelCodec:
        """What makes latents of mel frames and back, float32."""
        return MelCodec.load(self.root / WAVVAE, device)

    def durations(self) -> DurationTable:
        """How long phones sound."""
        return DurationTable.load(self.root / DURATIONS)
