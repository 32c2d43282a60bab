"""Weights of flow models that carry the state over an interval of time in one evaluation: files that are recognised by
their metadata, and backbones with such weights.

A file has the model's official keys, and those of one more embedding (:mod:`paretone.models.networks.diffusion`).
Metadata: ``interval`` ("true"), ``method``, ``evaluations`` (the most on which it was trained), ``sway`` (of the grid
that the evaluations stand on), ``guidance`` (JSON, the options of the guidance that the weights include), ``base``
(SHA-256 of the checkpoint that they were made from), ``steps`` and ``temperature`` (scale of the initial noise that
they are used with; 1 if it is missing).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.files import write_atomically
from paretone.models.base import IntervalWeights
from paretone.models.files.checkpoints import fingerprint, loaded_strictly, metadata_of, read_float_weights
from paretone.models.networks.diffusion import DiffusionTransformer, add_interval
from paretone.paths import own_place
from paretone.reading import parsed_json
from paretone.setting.knobs import Values

FOLDER = "intervals"
"""Name of their folder, next to the model's checkpoint (bundled) or in the user's data folder."""
PREFIX = "ema_model.transformer."
"""Of the keys in the official layout of F5-TTS."""
COUNTERS = ("initted", "step")
"""Keys of that layout that are no weights."""


def folders(model: str, checkpoint: Path) -> tuple[Path, Path]:
    """Folders of such weights of the model with the file ``checkpoint``."""
    return checkpoint.parent / FOLDER, user_folder(model)


def user_folder(model: str) -> Path:
    """Folder of those that the user trained."""
    return own_place(model) / FOLDER


def metadata(weights: IntervalWeights, base: str, steps: int) -> dict[str, str]:
    """Metadata of a file of ``weights``, whose path and fingerprint do not matter."""
    return {
        "interval": "true",
        "method": weights.method,
        "evaluations": str(weights.evaluations),
        "sway": f"{weights.sway:.6g}",
        "guidance": json.dumps(dict(weights.guidance), sort_keys=True),
        "base": base,
        "steps": str(steps),
        "temperature": f"{weights.temperature:.6g}",
    }


def described(found: Mapping[str, str], path: str, digest: str) -> IntervalWeights | None:
    """What the metadata ``found`` says of the file at ``path`` with the fingerprint ``digest``; ``None`` if it is no
    such file or says less than it must."""
    if found.get("interval") != "true":
        return None
    try:
        evaluations, sway = int(found["evaluations"][:9]), float(found["sway"])
        temperature = float(found.get("temperature", 1))
        guidance = {str(name): float(value) for name, value in parsed_json(found["guidance"]).items()}
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    if evaluations < 1 or not all(map(math.isfinite, (sway, temperature, *guidance.values()))) or temperature <= 0:
        return None
    return IntervalWeights(path, digest, evaluations, sway, Values(guidance), found.get("method", ""), temperature)


def find_interval_weights(
    places: Iterable[Path], base: str, check: Callable[[], None] = lambda: None
) -> tuple[IntervalWeights, ...]:
    """Those in the folders ``places`` that were made from the checkpoint with the fingerprint ``base``. ``check`` may
    raise to cancel."""
    found = []
    for path in sorted(path for place in places for path in place.glob("*.safetensors")):
        told = metadata_of(path)
        if told.get("base") == base and described(told, str(path), ""):
            one = described(told, str(path), fingerprint(path, check))
            assert one is not None
            found.append(one)
    return tuple(found)


def interval_backbone(own: DiffusionTransformer, weights: IntervalWeights) -> DiffusionTransformer:
    """A backbone as the model's ``own`` with such weights, on its device, ready for inference. Raises
    :class:`CheckpointError`."""

    def make() -> DiffusionTransformer:
        made = type(own)(own.config)  # type: ignore[call-arg]
        add_interval(made)
        return made

    path = Path(weights.path)
    backbone = loaded_strictly(make, plain_names(read_float_weights(path)), str(path))
    backbone = backbone.to(own.final_norm.linear.weight.device).eval().requires_grad_(False)
    backbone.fuse()
    return backbone


def plain_names(content: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights by the backbone's own names."""
    return {name.removeprefix(PREFIX): value for name, value in content.items() if name not in COUNTERS}


def save_interval_weights(path: Path, weights: Mapping[str, Tensor], told: Mapping[str, str]) -> None:
    """Write ``weights``, by their names in the model's official layout, in half precision, whole or not at all.
    Rotary frequencies stay as they are, because positions multiply their error. Raises :class:`OSError`."""
    stored = {
        name: value.cpu().contiguous().to(value.dtype if name.endswith("inv_freq") else torch.float16)
        if value.is_floating_point()
        else value
        for name, value in weights.items()
    }
    write_atomically(path, save(stored, dict(told)))


def require_interval_weights(path: Path) -> IntervalWeights:
    """What the file at ``path`` says of itself. Raises :class:`CheckpointError` if it is no such file."""
    found = described(metadata_of(path), str(path), fingerprint(path))
    if found is None:
        raise CheckpointError(f"{path} holds no weights for few evaluations by its metadata; choose a file that does.")
    return found
