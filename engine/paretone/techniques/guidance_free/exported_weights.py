"""CFG-free weights as a file for the official package and Paretone, with descriptive metadata.

Layout: the official keys, ``ema_model.transformer.…``, with ``initted`` and ``step``. Metadata: ``cfg_free`` ("true"),
``weight`` (the w of training), ``equivalent_guidance`` (w/(1−w)), ``method``, ``base`` (SHA-256 of the original
checkpoint), ``steps``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from paretone.errors import CheckpointError, ProfileError
from paretone.export.delivery import Content
from paretone.export.exported_weights import companions, safetensors_file
from paretone.models.f5.checkpoint import F5Checkpoint, backbone_weights, expected_shapes
from paretone.models.files.checkpoints import check_shapes, fingerprint, metadata_of, read_checkpoint, shapes_of
from paretone.models.files.trained_weights import PREFIX, WEIGHT_SETS, weight_folders
from paretone.observer import Check
from paretone.setting.profile import Profile
from paretone.wording import listed


@dataclass(frozen=True)
class GuidanceFreeWeights:
    path: Path
    metadata: Mapping[str, str]
    tensors: Mapping[str, Tensor] = field(repr=False)
    """Tensors by official names without ``transformer.``."""
    source: Path
    """Folder of the original model."""

    @classmethod
    def of(cls, profile: Profile, checkpoint: F5Checkpoint, check: Check = lambda: None) -> GuidanceFreeWeights | None:
        """Weights that ``profile`` runs on ``checkpoint``; ``None`` if it runs the checkpoint with guidance. ``check``
        may raise to cancel. Raises :class:`ProfileError` if the weights are missing."""
        own = cfg_free_metadata(checkpoint.path)
        if own is not None:
            return cls(checkpoint.path, own, checkpoint.weights, checkpoint.path.parent)
        if not profile.weights:
            return None
        places = weight_folders(WEIGHT_SETS, profile.setting.model, checkpoint.path)
        for path in (path for place in places for path in sorted(place.glob("*.safetensors"))):
            if fingerprint(path, check) == profile.weights:
                return cls.read(path, checkpoint)
        raise ProfileError(
            f"The CFG-free weights {profile.weights[:12]!r} of the profile are in none of "
            f"{listed(places)}; put their file there."
        )

    @classmethod
    def read(cls, path: Path, checkpoint: F5Checkpoint) -> GuidanceFreeWeights:
        """Read ``path``, which must fit the architecture of ``checkpoint``. Raises :class:`CheckpointError`."""
        metadata = cfg_free_metadata(path)
        if metadata is None:
            raise CheckpointError(f"{path} is not CFG-free by its metadata; choose a file that was trained so.")
        tensors = backbone_weights(read_checkpoint(path), str(path))
        check_shapes(expected_shapes(checkpoint.config), shapes_of(tensors), str(path))
        return cls(path, metadata, tensors, checkpoint.path.parent)

    @property
    def name(self) -> str:
        return f"model_cfg_free_w{float(self.metadata['weight']):.2f}.safetensors"

    def contents(self) -> dict[str, Content]:
        """Files by name: the weights and their companions. Raises :class:`CheckpointError` if these cannot be read."""
        weights = {f"{PREFIX}{name}": value for name, value in self.tensors.items()}
        weights |= {"initted": torch.tensor(True), "step": torch.tensor(int(self.metadata["steps"]))}
        return {self.name: safetensors_file(weights, self.metadata), **companions(self.source)}


def cfg_free_metadata(path: Path) -> dict[str, str] | None:
    """Metadata of a CFG-free file; ``None`` for any other. Raises :class:`CheckpointError` if a field is missing."""
    metadata = metadata_of(path)
    if metadata.get("cfg_free") != "true":
        return None
    required = ("weight", "equivalent_guidance", "method", "base", "steps")
    missing = [name for name in required if name not in metadata]
    if missing:
        raise CheckpointError(f"The metadata of {path} lacks {missing[0]!r}; train these CFG-free weights again.")
    return metadata
