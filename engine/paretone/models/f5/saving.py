"""Writing the weights of an F5 model as the official releases name them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save

from paretone.files import write_atomically
from paretone.models.f5.dit import DiT


def save_official(path: Path, model: DiT, step: int, metadata: Mapping[str, str] | None = None) -> None:
    """Write the weights under their official keys in float16, whole or not at all. Raises :class:`OSError`."""
    weights = {f"ema_model.transformer.{key}": _stored(key, value) for key, value in model.state_dict().items()}
    weights |= {"initted": torch.tensor(True), "step": torch.tensor(step)}
    write_atomically(path, save(weights, dict(metadata) if metadata else None))


def _stored(key: str, value: torch.Tensor) -> torch.Tensor:
    """Weights in half precision; the rotary frequencies in full, because positions multiply their error."""
    return value.cpu().contiguous().to(torch.float32 if key.endswith("inv_freq") else torch.float16)
