"""Shipped drafts of LM mini: of its lowest layers, without and with its last one, better than what they began as."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paretone.models.catalogue import entry
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.language_weights import LanguageWeights, find_language_weights
from paretone.models.minis.lm_mini import LmMiniFolder

FOLDER = entry("lm-mini").folder
LAYERS = LmMiniFolder(FOLDER).config().layers


@pytest.fixture(scope="module")
def found() -> LanguageWeights:
    return find_language_weights((FOLDER,), fingerprint(LmMiniFolder(FOLDER).weights_path))


def test_all_that_ships_belongs_to_the_model_that_ships(found: LanguageWeights) -> None:
    assert found.foreign == ()
    assert [Path(one.path).stem for one in found.drafts] == ["draft-2", "draft-3"]
    assert len(found.students) == 2
    assert sorted(found.layer_order) == list(range(LAYERS))


def test_drafts_have_the_lowest_layers_and_one_of_them_the_last(found: LanguageWeights) -> None:
    usual, published = found.drafts
    assert usual.retained == usual.trained == published.trained == (0, 1)
    assert published.retained == (0, 1, LAYERS - 1)
    assert usual.head and published.head


def test_training_made_them_acceptable(found: LanguageWeights) -> None:
    for draft in found.drafts:
        lines = Path(draft.path).with_suffix(".training.jsonl").read_text(encoding="utf-8").splitlines()
        validated = [one["validation"]["acceptance"] for one in map(json.loads, lines) if "validation" in one]
        assert validated[-1] > validated[0]
