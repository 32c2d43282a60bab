"""CFG-free weights: fine-tuned versions of a model, recognised by the metadata of their files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path

from paretone.models.base import WeightSet
from paretone.models.files.checkpoints import fingerprint, metadata_of
from paretone.paths import own_place

FOLDER = "cfg_free"
"""Name of their folder, next to the model's checkpoint (bundled) or in the user's data folder."""


def trained_guidance(path: Path) -> float | None:
    """The weight w that the checkpoint ``path`` was trained with, or ``None`` if it has no guidance in it."""
    metadata = metadata_of(path)
    if metadata.get("cfg_free") != "true":
        return None
    try:
        weight = float(metadata["weight"])
    except (KeyError, ValueError):
        return None
    return weight if math.isfinite(weight) and 0 < weight < 1 else None


def find_weight_sets(
    folders: Iterable[Path], base: str, check: Callable[[], None] = lambda: None
) -> tuple[WeightSet, ...]:
    """The CFG-free weights in ``folders`` that were made from the checkpoint with the fingerprint ``base``, by weight.

    ``check`` may raise to cancel.
    """
    found = []
    for path in sorted(path for folder in folders for path in folder.glob("*.safetensors")):
        weight, metadata = trained_guidance(path), metadata_of(path)
        if weight is not None and metadata.get("base") == base:
            found.append(WeightSet(str(path), fingerprint(path, check), weight, metadata.get("method", "")))
    return tuple(sorted(found, key=lambda one: one.weight))


def folders(model: str, checkpoint: Path) -> tuple[Path, Path]:
    """Folders of CFG-free weights of the model with the file ``checkpoint``."""
    return checkpoint.parent / FOLDER, own_place(model) / FOLDER
