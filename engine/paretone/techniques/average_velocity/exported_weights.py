"""Average-velocity weights as trained: a file in the official layout with one more embedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch import Tensor

from paretone.errors import ProfileError
from paretone.export.delivery import Content, Copied
from paretone.export.exported_weights import companions
from paretone.models.f5.checkpoint import F5Checkpoint
from paretone.models.files.checkpoints import fingerprint, is_packed_file, plain_file, read_float_weights
from paretone.models.files.trained_weights import INTERVALS, find_interval_weights, plain_names, weight_folders
from paretone.observer import Check
from paretone.setting.profile import Profile
from paretone.wording import listed


@dataclass(frozen=True)
class AverageVelocityWeights:
    path: Path
    source: Path
    """Folder of the original model."""

    @classmethod
    def of(cls, profile: Profile, checkpoint: F5Checkpoint, check: Check = lambda: None) -> AverageVelocityWeights:
        """Weights that ``profile`` runs on ``checkpoint``. ``check`` may cancel. Raises :class:`ProfileError`."""
        places = weight_folders(INTERVALS, profile.setting.model, checkpoint.path)
        for one in find_interval_weights(places, fingerprint(checkpoint.path, check), check):
            if one.fingerprint == profile.weights:
                return cls(Path(one.path), checkpoint.path.parent)
        raise ProfileError(
            f"The average-velocity weights {profile.weights[:12]!r} of the profile are in none of "
            f"{listed(places)}; put their file there."
        )

    @cached_property
    def tensors(self) -> Mapping[str, Tensor]:
        """Tensors by the names of the official class and of the embedding."""
        return plain_names(read_float_weights(self.path))

    @property
    def name(self) -> str:
        return f"model_average_velocity_{self.path.name}"

    def contents(self) -> dict[str, Content]:
        """Files by name: the weights, unpacked if only Paretone can read them, and their companions. Raises
        :class:`CheckpointError` if these cannot be read."""
        weights = plain_file(self.path) if is_packed_file(self.path) else Copied(self.path)
        return {self.name: weights, **companions(self.source)}
