"""The folder of the bundled MegaTTS 3, part by part: the official layout as far as it applies.

=========================  ===========================================================================
``diffusion_transformer``    ``config.yaml``, ``model.safetensors`` (float16, official names)
``wavvae``                   ``config.yaml``, ``mel_codec.safetensors``; see :class:`.mel_codec.MelCodec`
``durations.json``           mean durations of phones, in place of the official duration model
=========================  ===========================================================================

A model over latents of natural speech has neither of the last two, but ``vocab.txt``, its phones.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from engine.front_end.phones import PhoneVocabulary
from engine.models.files.checkpoints import load_strictly, read_float_weights
from engine.models.megatts3.checkpoint import TRANSFORMER, WAVVAE
from engine.models.megatts3.config import DiTConfig
from engine.models.megatts3.dit import MegaDiT
from engine.models.minis.folder import WEIGHTS, MiniFolder
from engine.models.minis.megatts3_mini.mel_codec import MelCodec

VOCABULARY = "vocab.txt"


@dataclass(frozen=True)
class MegaMiniFolder(MiniFolder):
    """A folder of this layout."""

    @classmethod
    def is_at(cls, root: Path) -> bool:
        """Whether ``root`` has this layout and not the official one."""
        return cls(root).weights_path.is_file()

    @property
    def weights_path(self) -> Path:
        return self.root / TRANSFORMER / WEIGHTS

    @property
    def is_natural(self) -> bool:
        """Whether the latents are those of natural speech: the folder then says which phones there are, and has no
        codec."""
        return (self.root / VOCABULARY).is_file()

    def vocabulary(self) -> PhoneVocabulary:
        """The phones of a model of natural speech."""
        return PhoneVocabulary.load(self.root / VOCABULARY)

    def backbone(self) -> MegaDiT:
        """The diffusion transformer, float32."""
        where = str(self.weights_path)
        weights = read_float_weights(self.weights_path, self.check)
        model = MegaDiT(DiTConfig.from_shapes({name: tuple(one.shape) for name, one in weights.items()}, where))
        load_strictly(model, weights, where)
        return model.eval().requires_grad_(False)

    def codec(self, device: torch.device | str = "cpu") -> MelCodec:
        """The codec of mel frames and latents, float32."""
        return MelCodec.load(self.root / WAVVAE, device)
