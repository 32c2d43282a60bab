"""Writing what bundled models with tokens have in common in their folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save
from torch import Tensor

from paretone.files import write_atomically
from paretone.models.minis.speaking import CONFIG, LAYOUT_FILE, WEIGHTS
from paretone.models.networks.causal import CausalConfig

LONGEST_POSITION = 4_096


def write_mini(
    folder: Path,
    weights: Mapping[str, Tensor],
    steps: int,
    config: Mapping[str, object],
    layout: Mapping[str, object],
) -> None:
    """Write the weights with what describes them."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / WEIGHTS, save(dict(weights), {"format": "pt", "steps": str(steps)}))
    for name, content in ((CONFIG, config), (LAYOUT_FILE, layout)):
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def copy_codec(codec: Path, place: Path) -> None:
    """Put the codec's folder at ``place``, unless it is there."""
    if place.resolve() != codec.resolve():
        shutil.copytree(codec, place, dirs_exist_ok=True)


def transformer_entries(config: CausalConfig) -> dict[str, object]:
    """The sizes of a transformer as ``config.json`` of transformers names them."""
    return {
        "hidden_size": config.hidden,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.key_value_heads,
        "head_dim": config.head_width,
        "rms_norm_eps": config.epsilon,
        "rope_theta": config.rope_theta,
        "max_position_embeddings": LONGEST_POSITION,
        "hidden_act": "silu",
        "attention_bias": False,
        "torch_dtype": "float16",
    }
