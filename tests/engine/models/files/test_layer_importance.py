"""The record of layer importance: what stays by it, and that it is read back as it was written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from paretone.errors import CheckpointError, SettingError
from paretone.models.files import layer_importance
from paretone.models.files.layer_importance import DIVERGENCE, FILE, WORD_ERROR, ImportanceRecord, LayerImportance
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.techniques import knobs_of, spade, technique

DIVERGENCES = LayerImportance(DIVERGENCE, (7.0, 0.1, 0.3, 0.2), (6, 0, 0.2, 0.1), (8, 0.2, 0.4, 0.3), utterances=9)


def record(*measures: LayerImportance) -> ImportanceRecord:
    return ImportanceRecord("lm-mini", "abc", 4, measures, seed=3, created="today")


WORDS = LayerImportance(WORD_ERROR, (0.9, 0.5, 0.0, 0.0), baseline=0.0)


def test_the_most_important_layers_stay_in_their_own_order() -> None:
    assert record(DIVERGENCES).order == (0, 2, 3, 1)
    assert [record(DIVERGENCES).retained(depth) for depth in (2, 3, 4)] == [(0, 2), (0, 2, 3), (0, 1, 2, 3)]
    assert record(DIVERGENCES, WORDS).order == (0, 1, 2, 3), "word errors decide before divergence"
    assert record(DIVERGENCES, WORDS).deciding is WORDS


def test_word_errors_within_their_noise_leave_it_to_divergence() -> None:
    low, high = (0.7, 0.01, 0.0, 0.01), (1.0, 0.1, 0.1, 0.1)
    words = LayerImportance(WORD_ERROR, (0.9, 0.06, 0.04, 0.05), low, high, baseline=0.03)
    assert record(DIVERGENCES, words).order == (0, 2, 3, 1)


def test_the_cut_lies_where_the_last_layer_that_stays_and_the_first_that_goes_differ() -> None:
    both = record(DIVERGENCES, WORDS)
    assert both.cut(1) == (WORD_ERROR, pytest.approx(0.7))
    assert both.cut(3) == (DIVERGENCE, pytest.approx(0.25)), "equal by word errors"
    assert both.cut(4) is None and both.cut(0) is None, "nothing is cut"
    assert record(LayerImportance(layer_importance.COSINE, (0.5,) * 4)).cut(2) is None, "nothing tells them apart"


def test_it_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    full = replace(DIVERGENCES, ranks=((0, 0), (3, 3), (1, 2), (1, 2)), run_away=(1, 0, 0, 0))
    written = record(full, LayerImportance(layer_importance.COSINE, (0.5, 0.1, 0.2, 0.3)))
    written.write(tmp_path / "models" / FILE)
    assert layer_importance.read_record([tmp_path / "models"], "abc") == written


def test_the_last_folder_decides_and_others_checkpoints_do_not_count(tmp_path: Path) -> None:
    first, last = tmp_path / "first", tmp_path / "last"
    record(DIVERGENCES).write(first / FILE)
    newer = replace(record(DIVERGENCES), seed=4)
    newer.write(last / FILE)
    assert layer_importance.read_record([first, last], "abc") == newer
    replace(newer, checkpoint="other").write(last / FILE)
    assert layer_importance.read_record([first, last], "abc") == record(DIVERGENCES)
    assert layer_importance.read_record([tmp_path / "nowhere"], "abc") is None


NO_VALUES = [{"values": [1.0, 2.0]}, {"values": [1.0, 2.0, 3.0, float("nan")]}]
NO_INTERVALS = [{"ranks": [0, 1, 2, 3]}, {"ranks": [[0], [1], [2], [3]]}, {"low": 0.5}]


@pytest.mark.parametrize("damage", ["", '{"measures": 3}', *NO_VALUES, *NO_INTERVALS])
def test_a_damaged_file_is_refused_with_its_name(tmp_path: Path, damage: str | dict[str, object]) -> None:
    whole = json.loads(record(DIVERGENCES).to_json())
    if isinstance(damage, dict):
        whole["measures"][0] |= damage
    (tmp_path / FILE).write_text(damage if isinstance(damage, str) else json.dumps(whole))
    with pytest.raises(CheckpointError, match=r"layers\.json" + " .*4 layers" * isinstance(damage, dict)):
        layer_importance.read_record([tmp_path], "abc")


def test_layers_that_stay_are_numbered_without_gaps() -> None:
    tensors = {f"llm.model.model.layers.{layer}.mlp.up_proj.weight": torch.tensor(layer) for layer in range(12)}
    tensors |= {"llm.model.model.norm.weight": torch.tensor(-1), "speech_embedding.weight": torch.tensor(-2)}
    kept = layer_importance.pruned(tensors, (0, 10, 11))
    layers = {f"llm.model.model.layers.{place}.mlp.up_proj.weight": kept for place, kept in enumerate((0, 10, 11))}
    others = {"llm.model.model.norm.weight": -1, "speech_embedding.weight": -2}
    assert {name: int(value) for name, value in kept.items()} == layers | others


@pytest.mark.parametrize("retained", [(), (2, 1), (0, 12)])
def test_layers_that_cannot_be_kept_are_refused(retained: tuple[int, ...]) -> None:
    with pytest.raises(SettingError, match="some of 0 to 11"):
        layer_importance.require_layers(retained, 12)
    assert layer_importance.require_layers([0, 5], 12) == (0, 5)


def test_layers_by_hand_are_put_in_order() -> None:
    assert knobs_of(UsedTechnique(spade.NAME, Values(layers=" 5, 0,11,5")))["layers"] == "0,5,11"
    assert knobs_of(UsedTechnique(spade.NAME))["layers"] == ""
    assert "3 layers, selected by hand, pruned" in technique(spade.NAME).describe(
        knobs_of(UsedTechnique(spade.NAME, Values(layers="0,5,11", recovery=spade.NONE)))
    )
    alone = knobs_of(UsedTechnique(spade.NAME, Values(depth=1)))
    assert technique(spade.NAME).describe(alone) == "1 layer, the most important one, fully retrained"
    for layers in ("1.5", "0;1"):
        with pytest.raises(SettingError, match="separated by commas"):
            knobs_of(UsedTechnique(spade.NAME, Values(layers=layers)))
