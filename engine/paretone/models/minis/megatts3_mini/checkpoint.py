"""The folder of the bundled MegaTTS 3, part by part: the official layout as far as it applies.

=========================  =============================================================
``diffusion_transformer``    ``config.yaml``, ``model.safetensors`` (float16, official names)
``vocab.txt``                its phones, a line each
=========================  =============================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paretone.front_end.phones import PhoneVocabulary
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights
from paretone.models.megatts3.checkpoint import TRANSFORMER
from paretone.models.megatts3.config import DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.minis.folder import WEIGHTS, MiniFolder

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

    def vocabulary(self) -> PhoneVocabulary:
        """Its phones."""
        return PhoneVocabulary.load(self.root / VOCABULARY)

    def backbone(self) -> MegaDiT:
        """The diffusion transformer, float32."""
        where = str(self.weights_path)
        weights = read_float_weights(self.weights_path, self.check)
        config = DiTConfig.from_shapes({name: tuple(one.shape) for name, one in weights.items()}, where)
        model = loaded_strictly(lambda: MegaDiT(config), weights, where)
        return model.eval().requires_grad_(False)
