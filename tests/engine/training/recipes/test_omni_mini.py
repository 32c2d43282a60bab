from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.front_end.durations import labels
from engine.models.minis.omni_mini.checkpoint import CODEC, OmniMiniFolder
from engine.models.minis.omni_mini.codec import ResidualCodec, ResidualCodecConfig
from engine.models.networks.quantised_mel import read_quantised_mel
from engine.training.recipes.codec_mini import CodecMiniOptions, CodecMiniRecipe
from engine.training.recipes.mel_excerpts import VOCABULARY
from engine.training.recipes.omni_mini import ARCHITECTURE, LAYOUT, OmniMini, OmniMiniOptions, PhonePairs
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_corpus import toy_corpus

CPU = torch.device("cpu")
SMALL = replace(ARCHITECTURE, hidden=32, layers=2, heads=2, key_value_heads=1, head_width=16, feed_forward=48)
QUICK = OmniMiniOptions(frames=300, warm_up=3, average_decay=0.8, validation_items=4)
SIZES = ResidualCodecConfig(
    codebooks=3,
    codes=16,
    numbers=6,
    width=16,
    inner_width=24,
    encoder_frame_layers=1,
    encoder_token_layers=1,
    decoder_token_layers=1,
    decoder_frame_layers=1,
)


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("codec")
    run = CodecMiniRecipe(toy_corpus(), CPU, CodecMiniOptions(frames=32, batch=8, warm_up=5), SIZES)
    for number in range(1, 21):
        run.step(number, 0.1)
    run.export(folder)
    return folder


def recipe(codec: Path, work: Path, options: OmniMiniOptions = QUICK) -> OmniMini:
    return OmniMini(toy_corpus(), codec, work, CPU, options, SMALL)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_what_is_said_is_learnt(codec: Path, tmp_path: Path, half: bool):
    def make(options: OmniMiniOptions) -> OmniMini:
        return recipe(codec, tmp_path / "work", options)

    learnt = learning(make, replace(QUICK, half_precision=half), 40, lambda number: 0.1)
    learnt.assert_validation_falls("cross_entropy")
    assert learnt.taught.after["first"] > learnt.control.after["first"]
    assert all(value.dtype == torch.float32 for value in learnt.taught.recipe.model.parameters())


def test_text_tells_the_phones_of_both_halves_of_every_frame(codec: Path, tmp_path: Path):
    run = recipe(codec, tmp_path / "work")
    model, _ = read_quantised_mel(codec, ResidualCodec)
    for ours, clip in zip(run.clips, toy_corpus().training, strict=True):
        by_frame = labels(clip.phones, clip.frames, VOCABULARY)
        assert len(ours.phones) == len(ours.codes) == clip.frames // 4
        first, second = np.divmod(ours.phones, len(VOCABULARY.phones))
        assert np.array_equal(first, by_frame[1::4][: len(first)])
        assert np.array_equal(second, by_frame[3::4])
        codes = model.encode(torch.from_numpy(clip.mel.astype(np.float32))[None])[0]
        assert np.array_equal(ours.codes, codes.numpy())


def test_codes_are_made_once(codec: Path, tmp_path: Path):
    recipe(codec, tmp_path / "work")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("*.npz")}
    assert len(kept) == 2
    recipe(codec, tmp_path / "work")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_rare_pairs_of_phones_are_known_by_their_phones():
    pairs = PhonePairs(5, 8)
    ids = torch.tensor([[0, 7, 24]])
    told = pairs(ids)
    torch.testing.assert_close(told[0, 1], pairs.first.weight[1] + pairs.second.weight[2])
    torch.testing.assert_close(told, pairs.weight[ids])


def test_a_resumed_run_ends_with_the_same_bits(codec: Path, tmp_path: Path):
    whole, resumed = whole_and_resumed(lambda: recipe(codec, tmp_path / "codes"), tmp_path)
    assert same_weights(resumed.average.module, whole.average.module)


def test_the_export_is_the_official_layout_and_scores_as_the_trained_network(codec: Path, tmp_path: Path):
    run = recipe(codec, tmp_path / "work")
    for number in range(1, 4):
        run.step(number, 0.1)
    run.export(tmp_path / "export")
    folder = OmniMiniFolder(tmp_path / "export")
    assert folder.layout() == LAYOUT
    assert folder.config() == run.model.config
    assert folder.config().transformer == SMALL
    assert folder.codec()[0].config == SIZES
    assert folder.durations()
    described = json.loads((tmp_path / "export" / "config.json").read_text())
    assert described["model_type"] == "omnivoice"
    assert described["llm_config"]["vocab_size"] == len(VOCABULARY.phones) ** 2
    assert (tmp_path / "export" / CODEC / "model.safetensors").is_file()

    network = folder.network()
    text = torch.randint(LAYOUT.tokens, (1, 9))
    codes = torch.randint(SIZES.codes + 1, (1, SIZES.codebooks, 9))
    with torch.no_grad():
        ours, theirs = run.average.module(text, codes, 5), network(text, codes, 5)
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=2e-2)
