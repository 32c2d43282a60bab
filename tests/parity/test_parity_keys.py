"""Names and shapes of the released weights: a model that has all of them and no others loads strictly."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from paretone.models.f5.checkpoint import expected_shapes
from paretone.models.f5.config import VARIANTS
from paretone.models.networks.vocos import Vocos, VocosConfig
from tests.parity.fixtures import SHIPPED

KEYS = SHIPPED / "keys"
RELEASED_ENTRIES = 2545


def released(name: str) -> dict[str, tuple[int, ...]]:
    tensors = json.loads((KEYS / f"{name}.json").read_text(encoding="utf-8"))["tensors"]
    return {key: tuple(shape) for key, (shape, _) in tensors.items()}


@pytest.mark.parametrize("name", list(VARIANTS))
def test_parity_weight_names_and_shapes(name: str) -> None:
    recorded = name if (KEYS / f"{name}.json").is_file() else name.replace("F5TTS_", "F5TTS_v1_")
    expected = expected_shapes(replace(VARIANTS[name], text_num_embeds=RELEASED_ENTRIES))
    assert {f"transformer.{key}": shape for key, shape in expected.items()} == released(recorded)


def test_parity_vocos_weight_names_and_shapes() -> None:
    with torch.device("meta"):
        vocos = Vocos(VocosConfig())
    expected = {key: tuple(value.shape) for key, value in vocos.state_dict().items()}
    recorded = released("Vocos_mel_24khz")
    assert expected == {key: shape for key, shape in recorded.items() if not key.startswith("feature_extractor.")}


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({"qk_norm": "rms_norm"}, {"attn.q_norm.weight": (64,), "attn.k_norm.weight": (64,)}),
        ({"long_skip_connection": True}, {"long_skip_connection.weight": (1024, 2048)}),
    ],
)
def test_parity_weight_names_of_options(entry: dict, names: dict[str, tuple[int, ...]]) -> None:
    plain = replace(VARIANTS["F5TTS_v1_Base"], depth=1, text_num_embeds=RELEASED_ENTRIES)
    more = expected_shapes(replace(plain, **entry)).items() - expected_shapes(plain).items()
    assert {key.removeprefix("transformer_blocks.0."): shape for key, shape in more} == names
