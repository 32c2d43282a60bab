from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.models.minis.lm_mini.checkpoint import LmMiniFolder
from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizerConfig
from engine.training.recipes.lm_mini import ARCHITECTURE, LmMini, LmMiniOptions, layout_of
from engine.training.recipes.mel_excerpts import VOCABULARY
from engine.training.recipes.speech_tokenizer import SpeechTokenizerOptions, SpeechTokenizerRecipe
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_corpus import toy_corpus

CPU = torch.device("cpu")
SMALL = replace(ARCHITECTURE, hidden=32, layers=2, heads=2, key_value_heads=2, head_width=16, feed_forward=48)
QUICK = LmMiniOptions(positions=600, warm_up=3, average_decay=0.8, validation_items=4)
TOKENIZER = SpeechTokenizerConfig(
    width=16,
    inner_width=24,
    encoder_frame_layers=1,
    encoder_token_layers=1,
    decoder_token_layers=1,
    decoder_frame_layers=1,
)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    options = SpeechTokenizerOptions(frames=32, batch=8)
    SpeechTokenizerRecipe(toy_corpus(), CPU, options, TOKENIZER).export(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


def recipe(tokenizer: Path, work: Path, options: LmMiniOptions = QUICK) -> LmMini:
    return LmMini(toy_corpus(), tokenizer, work, CPU, options, SMALL)


def test_what_is_said_is_learnt(tokenizer: Path, tmp_path: Path):
    def make(options: LmMiniOptions) -> LmMini:
        return recipe(tokenizer, tmp_path / "work", options)

    learnt = learning(make, QUICK, 30, lambda number: 0.1)
    learnt.assert_validation_falls("cross_entropy")
    assert learnt.taught.after["among_ten"] > learnt.control.after["among_ten"]


def test_tokens_have_their_phones_and_are_made_once(tokenizer: Path, tmp_path: Path):
    first = recipe(tokenizer, tmp_path / "work").data
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("*.npz")}
    assert len(kept) == 2
    second = recipe(tokenizer, tmp_path / "work").data
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for ours, theirs, clip in zip(first.training, second.training, toy_corpus().training, strict=True):
        assert np.array_equal(ours.codes, theirs.codes)
        assert len(ours.phones) == len(ours.codes) == clip.frames // 2


def test_a_resumed_run_ends_with_the_same_bits(tokenizer: Path, tmp_path: Path):
    whole, resumed = whole_and_resumed(lambda: recipe(tokenizer, tmp_path / "tokens"), tmp_path)
    assert same_weights(resumed.average.module, whole.average.module)


def test_the_export_is_a_folder_that_the_engine_and_transformers_load(tokenizer: Path, tmp_path: Path):
    run = recipe(tokenizer, tmp_path / "work")
    for number in range(1, 4):
        run.step(number, 0.1)
    run.export(tmp_path / "export")
    folder = LmMiniFolder(tmp_path / "export")
    layout = folder.layout()
    assert layout == layout_of(VOCABULARY, 1920)
    assert folder.config() == SMALL
    assert folder.tokenizer(CPU)[0].config == TOKENIZER
    assert folder.durations()
    network = folder.network(CPU)

    ids = torch.tensor([[1, 2, layout.end_of_text, layout.start_of_speech, layout.first_code + 7]])
    positions = torch.tensor([0, 1, 2, 0, 1])
    with torch.no_grad():
        trained = run.average.module
        hidden = trained.transformer(trained.embedding(ids), positions=positions)
        ours = trained.head(hidden)[0, -1]
    assert json.loads((tmp_path / "export" / "config.json").read_text())["vocab_size"] == layout.ids
    theirs = _in_transformers(tmp_path / "export", ids, positions)[layout.rows]
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=2e-2)
    assert network.tokens.codes == 1920


def _in_transformers(folder: Path, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32)
    with torch.no_grad():
        mask = torch.ones_like(ids)
        return model(ids, position_ids=positions[None], attention_mask=mask).logits[0, -1]
