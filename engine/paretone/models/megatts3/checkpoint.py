"""The folder of the official release, part by part.

=======================  ==================================================================
``diffusion_transformer``  ``config.yaml``, ``model_only_last.ckpt`` with ``state_dict/dit``
``aligner_lm``             ``model_only_last.ckpt`` with ``state_dict/model``
``duration_lm``            ``config.yaml``, ``model_only_last.ckpt`` with ``state_dict/dur_model``
``wavvae``                 ``config.yaml``, ``decoder.ckpt`` with ``state_dict/model_gen``;
                           or ``model_only_last.ckpt``, which has the encoder as well
``g2p``                    a model and its tokenizer, for ``transformers``
=======================  ==================================================================

Files are read without running code in them, and strictly: upstream leaves out weights of the transformer and of WavVAE
that it does not know, and starts with random ones where some are missing; here both are errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.files.checkpoints import loaded_strictly, read_checkpoint, shapes_of, sound_tensors, unwrapped
from paretone.models.files.config_file import ConfigFile
from paretone.models.megatts3.aligner import Aligner
from paretone.models.megatts3.config import DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from paretone.models.megatts3.duration_model import FRAMES_MULTIPLE, DurationModel
from paretone.models.megatts3.wavvae import WavVAE
from paretone.observer import Check

TRANSFORMER, ALIGNER, DURATIONS = "diffusion_transformer", "aligner_lm", "duration_lm"
GRAPHEMES, WAVVAE = "g2p", "wavvae"
PARTS = (TRANSFORMER, ALIGNER, DURATIONS, GRAPHEMES, WAVVAE)
CONFIG = "config.yaml"
WEIGHTS, DECODER_WEIGHTS = "model_only_last.ckpt", "decoder.ckpt"


@dataclass(frozen=True)
class OfficialFolder:
    """The release in ``root``. Reading raises :class:`CheckpointError`, and calls ``check``, which may cancel."""

    root: Path
    check: Check = lambda: None

    def require_parts(self) -> None:
        """Raise :class:`CheckpointError` that names missing parts."""
        missing = [name for name in PARTS if not (self.root / name).is_dir()]
        if missing:
            raise CheckpointError(
                f"{self.root} is not a complete release of MegaTTS 3: it lacks {', '.join(missing)}; download "
                f"all of it (folders {', '.join(PARTS)})."
            )

    @property
    def backbone_path(self) -> Path:
        """Weight file that identifies the model."""
        return self.root / TRANSFORMER / WEIGHTS

    def window(self) -> int:
        """``win_size``, to which recordings are padded."""
        file = ConfigFile.read(self.root / TRANSFORMER / CONFIG)
        multiple = file.number("frames_multiple", FRAMES_MULTIPLE)
        if multiple != FRAMES_MULTIPLE:
            raise CheckpointError(
                f"{file.where}: frames_multiple is {multiple}, but only {FRAMES_MULTIPLE} is supported."
            )
        return file.number("win_size")

    def backbone(self) -> MegaDiT:
        weights = read_part(self.backbone_path, "dit", self.check)
        config = DiTConfig.from_shapes(shapes_of(weights), str(self.backbone_path))
        return loaded_strictly(lambda: MegaDiT(config), weights, str(self.backbone_path))

    def aligner(self) -> Aligner:
        path = self.root / ALIGNER / WEIGHTS
        return Aligner.from_official(read_part(path, "model", self.check), str(path))

    def duration_model(self) -> DurationModel:
        path = self.root / DURATIONS / WEIGHTS
        return DurationModel.from_official(path.with_name(CONFIG), read_part(path, "dur_model", self.check), str(path))

    def wavvae(self) -> WavVAE:
        """WavVAE, float32, with an encoder if the user has added its file."""
        path = self.root / WAVVAE / WEIGHTS
        if not path.is_file():
            path = path.with_name(DECODER_WEIGHTS)
        return WavVAE.from_official(path.with_name(CONFIG), read_part(path, "model_gen", self.check), str(path))


def read_part(path: Path, name: str, check: Check = lambda: None) -> dict[str, Tensor]:
    """Tensors under ``state_dict/name`` of an official file, without the prefixes of training tools. Raises
    :class:`CheckpointError`."""
    content = read_checkpoint(path, check).get("state_dict")
    part = content.get(name) if isinstance(content, Mapping) else None
    if not isinstance(part, Mapping) or not part or not all(isinstance(value, Tensor) for value in part.values()):
        raise CheckpointError(
            f"{path} holds no weights under state_dict/{name}; it is not a file of the MegaTTS 3 release."
        )
    return unwrapped(sound_tensors(part, str(path)), str(path))
