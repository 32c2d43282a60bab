"""Layers leave a checkpoint, and those that stay are numbered anew."""

from __future__ import annotations

import pytest
import torch

from paretone.errors import SettingError
from paretone.models.files.layer_importance import layer_of, pruned, require_layers
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques import knobs_of, spade, technique


def test_layers_that_stay_are_numbered_without_gaps() -> None:
    tensors = {f"llm.model.model.layers.{layer}.mlp.up_proj.weight": torch.tensor(layer) for layer in range(12)}
    tensors |= {"llm.model.model.norm.weight": torch.tensor(-1), "speech_embedding.weight": torch.tensor(-2)}
    kept = pruned(tensors, (0, 10, 11))
    layers = {name: int(value) for name, value in kept.items() if "layers" in name}
    assert layers == {
        "llm.model.model.layers.0.mlp.up_proj.weight": 0,
        "llm.model.model.layers.1.mlp.up_proj.weight": 10,
        "llm.model.model.layers.2.mlp.up_proj.weight": 11,
    }
    assert int(kept["llm.model.model.norm.weight"]) == -1
    assert len(kept) == 5


def test_names_without_a_prefix_are_known_too() -> None:
    assert set(pruned({"layers.3.a": torch.zeros(1), "layers.1.a": torch.zeros(1)}, (3,))) == {"layers.0.a"}
    assert layer_of("model.layers.11.mlp.gate_proj.weight") == 11
    assert layer_of("model.norm.weight") is None


@pytest.mark.parametrize("retained", [(), (0, 0), (2, 1), (-1, 2), (0, 12)])
def test_layers_that_cannot_be_kept_are_refused(retained: tuple[int, ...]) -> None:
    with pytest.raises(SettingError, match="some of 0 to 11"):
        require_layers(retained, 12)
    assert require_layers([0, 5], 12) == (0, 5)


def test_layers_by_hand_are_put_in_order() -> None:
    assert knobs_of(UsedTechnique(spade.NAME, Values(layers=" 5, 0,11,5")))["layers"] == "0,5,11"
    assert knobs_of(UsedTechnique(spade.NAME))["layers"] == ""
    assert "3 layers, selected by hand, pruned" in technique(spade.NAME).describe(
        knobs_of(UsedTechnique(spade.NAME, Values(layers="0,5,11", recovery=spade.NONE)))
    )
    alone = knobs_of(UsedTechnique(spade.NAME, Values(depth=1)))
    assert technique(spade.NAME).describe(alone) == "1 layer, the most important one, fully retrained"


@pytest.mark.parametrize("layers", ["zero", "1.5", "-1", "0;1"])
def test_what_lists_no_layers_is_refused(layers: str) -> None:
    with pytest.raises(SettingError, match="separated by commas"):
        knobs_of(UsedTechnique(spade.NAME, Values(layers=layers)))
