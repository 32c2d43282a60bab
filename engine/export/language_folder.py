"""A language model's files in the layout of Hugging Face."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.export.causal_model import CausalModel
from engine.export.delivery import Content
from engine.export.language import CONFIG, WEIGHTS
from engine.export.safetensors_file import safetensors_file

GENERATION = "generation_config.json"


def model_folder(model: CausalModel, generation: Mapping[str, Any]) -> dict[str, Content]:
    """The files of ``model`` by name, with its ``generation_config.json``."""
    return {
        CONFIG: _json(model.config),
        GENERATION: _json(generation),
        WEIGHTS: safetensors_file(model.tensors, {"format": "pt"}),
    }


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=1) + "\n").encode()
