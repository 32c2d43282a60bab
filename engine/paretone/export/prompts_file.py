"""``prompts.json``: a model's vocabulary, how its tokens are drawn, and prompts as ids, for scripts of exports.

Torch-free.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from paretone.models.families.official_ids import OfficialIds, OfficialPrompt
from paretone.setting.knobs import Values

PROMPTS = "prompts.json"
KIND, SCHEMA = "paretone prompts", 1
SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty", "repeats")
"""Options that say how tokens are drawn."""


def sampling_of(options: Values) -> dict[str, Any]:
    """Those of ``options`` that say how tokens are drawn."""
    return {name: options[name] for name in SAMPLING if name in options}


def prompts_file(ids: OfficialIds, prompts: Sequence[OfficialPrompt], voice: str, options: Values) -> bytes:
    """The file of ``prompts`` in the voice so called, under ``options``."""
    vocabulary = {"size": ids.size, "first_code": ids.first_code, "codes": ids.codes, "stops": list(ids.stops)}
    listed = [
        {
            "text": one.text,
            "voice": voice,
            "ids": list(one.ids),
            "positions": None if one.positions is None else list(one.positions),
            "minimum": one.minimum,
            "maximum": one.maximum,
        }
        for one in prompts
    ]
    content = {
        "kind": KIND,
        "schema": SCHEMA,
        "vocabulary": vocabulary,
        "sampling": sampling_of(options),
        "prompts": listed,
    }
    return (json.dumps(content) + "\n").encode()
