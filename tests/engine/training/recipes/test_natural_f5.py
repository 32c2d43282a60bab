from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import yaml

from engine.front_end.natural.phones import PHONES
from engine.models.files.checkpoints import read_weights
from engine.training.recipes.natural_f5 import ARCHITECTURE, NaturalF5, NaturalF5Options
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_corpus

SMALL = replace(ARCHITECTURE, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)
CPU = torch.device("cpu")
QUICK = NaturalF5Options(
    frames=300,
    matrix_rate=0.05,
    other_rate=5e-3,
    warm_up=5,
    average_decay=0.9,
    validation_items=4,
    shortest_prompt=10,
    longest_prompt=40,
)


def recipe(options: NaturalF5Options = QUICK) -> NaturalF5:
    return NaturalF5(toy_natural_corpus(), CPU, options, SMALL)


def test_the_held_out_loss_falls_however_exactly_the_text_is_aligned():
    learnt = learning(recipe, QUICK, 40, lambda number: number / 41)
    names = ("t=0.05", "t=0.40", "t=0.05, by word", "t=0.40, by word")
    assert set(learnt.taught.before) == set(names)
    learnt.assert_validation_falls(*names)


def test_of_pairs_an_excerpt_of_the_first_clip_is_seen_before_all_of_the_second():
    run = recipe()
    first, second, alone = toy_natural_corpus().training[:3]
    batch = run.laid_out([[first, second], [alone]])
    join = int(batch.joins[0])
    assert QUICK.shortest_prompt <= join <= QUICK.longest_prompt
    assert batch.lengths.tolist() == [join + second.frames, alone.frames]
    seen = batch.mel[0].numpy()
    np.testing.assert_array_equal(seen[join : join + second.frames], second.mel.astype(np.float32))
    starts = range(first.frames - join + 1)
    assert any(np.array_equal(seen[:join], first.mel[start : start + join]) for start in starts)
    np.testing.assert_array_equal(batch.ids[0, join : join + second.frames], run.tokens([second])[0])


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path):
    whole, resumed = whole_and_resumed(recipe, tmp_path)
    assert same_weights(resumed.model, whole.model)


def test_the_export_has_the_official_layout(tmp_path: Path):
    run = recipe()
    run.step(1, 0.1)
    run.export(tmp_path)
    assert (tmp_path / "vocab.txt").read_text(encoding="utf-8").split() == list(PHONES)
    assert yaml.safe_load((tmp_path / "model.yaml").read_text(encoding="utf-8"))["model"]["arch"]["dim"] == 64
    assert any(name.endswith("text_embed.text_embed.weight") for name in read_weights(tmp_path / "model.safetensors"))
