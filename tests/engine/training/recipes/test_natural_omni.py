from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.models.minis.omni_mini.checkpoint import CODEC, OmniMiniFolder
from paretone.models.minis.omni_mini.layout import Layout
from paretone.training.recipes.natural_omni import PhonePairs
from paretone.training.spoken_tokens import VOCABULARY, frame_phones
from tests.engine.training.learning import learning
from tests.engine.training.recipes.natural_models import OMNI, OMNI_CODEC, QUICK_OMNI, codec, omni  # noqa: F401
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_corpus

LAYOUT = Layout(VOCABULARY)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_what_is_said_is_learnt(codec: Path, tmp_path: Path, half: bool):  # noqa: F811
    options = replace(QUICK_OMNI, half_precision=half)
    learnt = learning(lambda chosen: omni(codec, tmp_path, chosen), options, 30, lambda number: 0.1)
    learnt.assert_validation_falls("cross_entropy")
    assert learnt.taught.after["first"] > learnt.control.after["first"]
    assert all(value.dtype == torch.float32 for value in learnt.taught.recipe.model.parameters())


def test_text_tells_the_phones_of_both_halves_of_every_frame(codec: Path, tmp_path: Path):  # noqa: F811
    for ours, clip in zip(omni(codec, tmp_path).clips, toy_natural_corpus().training, strict=True):
        by_frame = frame_phones(clip)
        assert len(ours.phones) == len(ours.codes) == len(by_frame) // 4
        first, second = np.divmod(ours.phones, len(VOCABULARY.phones))
        assert np.array_equal(first, by_frame[1::4][: len(first)])
        assert np.array_equal(second, by_frame[3::4])


def test_codes_are_made_once(codec: Path, tmp_path: Path):  # noqa: F811
    omni(codec, tmp_path / "work")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("*.npz")}
    assert len(kept) == 2
    omni(codec, tmp_path / "work")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_rare_pairs_of_phones_are_known_by_their_phones():
    pairs = PhonePairs(5, 8)
    ids = torch.tensor([[0, 7, 24]])
    told = pairs(ids)
    torch.testing.assert_close(told[0, 1], pairs.first.weight[1] + pairs.second.weight[2])
    torch.testing.assert_close(told, pairs.weight[ids])


def test_a_resumed_run_ends_with_the_same_bits(codec: Path, tmp_path: Path):  # noqa: F811
    whole, resumed = whole_and_resumed(lambda: omni(codec, tmp_path / "codes"), tmp_path)
    assert same_weights(resumed.average.module, whole.average.module)


def test_the_export_is_the_official_layout_and_scores_as_the_trained_network(codec: Path, tmp_path: Path):  # noqa: F811
    run = omni(codec, tmp_path / "work")
    for number in range(1, 4):
        run.step(number, 0.1)
    run.export(tmp_path / "export")
    folder = OmniMiniFolder(tmp_path / "export")
    assert folder.layout() == LAYOUT
    assert folder.config() == run.model.config
    assert folder.config().transformer == OMNI
    assert folder.codec().config == OMNI_CODEC
    described = json.loads((tmp_path / "export" / "config.json").read_text())
    assert described["model_type"] == "omnivoice"
    assert described["llm_config"]["vocab_size"] == len(VOCABULARY.phones) ** 2
    assert (tmp_path / "export" / CODEC / "model.safetensors").is_file()

    network = folder.network()
    text = torch.randint(LAYOUT.tokens, (1, 9))
    codes = torch.randint(OMNI_CODEC.codes + 1, (1, OMNI_CODEC.codebooks, 9))
    with torch.no_grad():
        ours, theirs = run.average.module(text, codes, 5), network(text, codes, 5)
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=2e-2)
