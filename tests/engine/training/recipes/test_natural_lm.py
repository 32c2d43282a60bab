from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.front_end.natural.phones import PHONES
from paretone.models.minis.lm_mini.checkpoint import LmMiniFolder
from paretone.training.recipes.natural_lm import layout_of
from paretone.training.spoken_tokens import VOCABULARY
from tests.engine.training.learning import learning
from tests.engine.training.recipes.natural_models import CPU, LM, LM_TOKENIZER, QUICK_LM, lm, tokenizer  # noqa: F401
from tests.engine.training.resuming import same_weights, whole_and_resumed


def test_what_is_said_is_learnt(tokenizer: Path, tmp_path: Path):  # noqa: F811
    learnt = learning(lambda options: lm(tokenizer, tmp_path, options), QUICK_LM, 30, lambda number: 0.1)
    learnt.assert_validation_falls("cross_entropy")
    assert learnt.taught.after["among_ten"] > learnt.control.after["among_ten"]


def test_tokens_are_made_once(tokenizer: Path, tmp_path: Path):  # noqa: F811
    first = lm(tokenizer, tmp_path / "work").data
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("*.npz")}
    assert len(kept) == 2
    second = lm(tokenizer, tmp_path / "work").data
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for ours, theirs in zip(first.training, second.training, strict=True):
        assert np.array_equal(ours.codes, theirs.codes)


def test_a_resumed_run_ends_with_the_same_bits(tokenizer: Path, tmp_path: Path):  # noqa: F811
    whole, resumed = whole_and_resumed(lambda: lm(tokenizer, tmp_path / "tokens"), tmp_path)
    assert same_weights(resumed.average.module, whole.average.module)


def test_the_export_is_a_folder_that_the_engine_and_transformers_load(tokenizer: Path, tmp_path: Path):  # noqa: F811
    run = lm(tokenizer, tmp_path / "work")
    for number in range(1, 4):
        run.step(number, 0.1)
    run.export(tmp_path / "export")
    folder = LmMiniFolder(tmp_path / "export")
    layout = folder.layout()
    assert layout == layout_of(VOCABULARY, LM_TOKENIZER.codes)
    assert layout.vocabulary.phones == PHONES
    assert folder.config() == LM
    assert folder.tokenizer(CPU).config == LM_TOKENIZER
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
    assert network.tokens.codes == LM_TOKENIZER.codes


def _in_transformers(folder: Path, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32)
    with torch.no_grad():
        mask = torch.ones_like(ids)
        return model(ids, position_ids=positions[None], attention_mask=mask).logits[0, -1]
