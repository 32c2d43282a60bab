"""A language model's files in the layout of Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paretone.export.causal_model import CausalModel
from paretone.export.delivery import Content
from paretone.export.language import CONFIG, WEIGHTS
from paretone.export.readme import json_file
from paretone.export.safetensors_file import safetensors_file

GENERATION = "generation_config.json"


def model_folder(model: CausalModel, generation: Mapping[str, Any]) -> dict[str, Content]:
    """The files of ``model`` by name, with its ``generation_config.json``."""
    return {
        CONFIG: json_file(model.config),
        GENERATION: json_file(generation),
        WEIGHTS: safetensors_file(model.tensors, {"format": "pt"}),
    }
