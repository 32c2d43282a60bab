"""Recipes of the flow models of natural speech."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from paretone.errors import CheckpointError
from paretone.front_end.phones import PHONES
from paretone.models.f5.dit import DiT
from paretone.models.files.checkpoints import load_strictly, read_weights
from paretone.models.megatts3.checkpoint import TRANSFORMER
from paretone.models.megatts3.config import LATENT_STRIDE
from paretone.models.minis.megatts3_mini import MegaMiniFolder
from paretone.models.minis.natural_decoder import LEVEL
from paretone.models.minis.natural_vocoder import GROUPED, ungrouped
from paretone.models.minis.speaking import WEIGHTS
from paretone.paths import resource
from paretone.training.natural_corpus import voice_frames
from paretone.training.recipes.natural_f5 import ARCHITECTURE, NaturalF5, NaturalF5Options
from paretone.training.recipes.natural_megatts3 import ARCHITECTURE as MEGA_ARCHITECTURE
from paretone.training.recipes.natural_megatts3 import NaturalMega, NaturalMegaOptions, groups_of, latent_clip
from tests.engine.awake import awake
from tests.engine.training.learning import exported, same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_clip, toy_natural_corpus

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
    np.testing.assert_array_equal(batch.ids[0, join : join + second.frames], run.seen([second])[0].ids)


def test_all_parameters_learn():
    run = recipe(replace(QUICK, warm_up=0))
    before = {name: value.clone() for name, value in run.model.named_parameters()}
    for number in range(1, 4):
        run.step(number, 0.1)
    assert [name for name, value in run.model.named_parameters() if torch.equal(value, before[name])] == []


def test_the_export_is_an_official_folder_laid_out_like_the_bundled_one(tmp_path: Path):
    run = recipe()
    run.step(1, 0.1)
    awake(run.average.module)
    run.export(tmp_path)
    weights = read_weights(tmp_path / "model.safetensors")
    assert int(weights.pop("step")) == 1
    assert bool(weights.pop("initted")) is True
    prefix = "ema_model.transformer."
    assert all(name.startswith(prefix) for name in weights)
    assert weights[prefix + "rotary_embed.inv_freq"].dtype == torch.float32
    assert weights[prefix + "proj_out.weight"].dtype == torch.float16
    load_strictly(DiT(SMALL), {name.removeprefix(prefix): value.float() for name, value in weights.items()}, "export")
    assert (tmp_path / "vocab.txt").read_bytes() == resource("models", "f5-mini", "vocab.txt").read_bytes()
    ours, bundled = (
        yaml.safe_load((folder / "model.yaml").read_text(encoding="utf-8"))["model"]
        for folder in (tmp_path, resource("models", "f5-mini"))
    )
    assert ours["arch"].pop("dim") == SMALL.dim
    for sizes in ("dim", "depth", "heads", "text_dim", "conv_layers"):
        ours["arch"].pop(sizes, None), bundled["arch"].pop(sizes)
    assert ours == bundled


def test_a_run_starts_from_an_exported_model_and_aligns_as_at_the_end(tmp_path: Path):
    of_layout = replace(SMALL, heads=1, dim_head=64)
    first = exported(NaturalF5(toy_natural_corpus(), CPU, QUICK, of_layout), tmp_path)
    second = NaturalF5(toy_natural_corpus(), CPU, QUICK, of_layout, initial=tmp_path)
    assert second.describe()["initial_weights"] != first.describe()["initial_weights"] == "random"
    assert second.options.alignment.exact_until == 0.0
    for name, value in first.average.module.state_dict().items():
        torch.testing.assert_close(second.model.state_dict()[name], value, atol=2e-2, rtol=2e-2)
    before = second.model.proj_out.weight.clone()
    second.step(1, 0.1)
    assert not torch.equal(second.model.proj_out.weight, before)
    with pytest.raises(CheckpointError, match="is not of the model that voice-f5 makes"):
        NaturalF5(toy_natural_corpus(), CPU, QUICK, replace(of_layout, ff_mult=3), initial=tmp_path)


MEGA_SMALL = replace(
    MEGA_ARCHITECTURE,
    dim=64,
    layers=2,
    heads=1,
    ff_hidden=96,
    local_cond=32,
    phone_layers=1,
    phone_heads=2,
    phone_ff_hidden=64,
)
MEGA_QUICK = NaturalMegaOptions(
    frames=200, matrix_rate=0.05, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4
)


def mega(options: NaturalMegaOptions = MEGA_QUICK) -> NaturalMega:
    return NaturalMega(toy_natural_corpus(), CPU, options, MEGA_SMALL)


@pytest.mark.parametrize("make", [recipe, mega])
def test_a_resumed_run_ends_with_the_same_bits(make: type, tmp_path: Path):
    whole, resumed = whole_and_resumed(make, tmp_path)
    assert same_weights(resumed.model, whole.model)


def test_groups_hold_everything_but_the_level_and_frames_name_their_phone():
    clip = toy_natural_clip(3, 1, 61)
    frames = voice_frames(clip)
    groups = groups_of(clip)
    assert groups.shape == (30, GROUPED)
    torch.testing.assert_close(ungrouped(groups)[:, :LEVEL], frames[:60, :LEVEL])
    assert not ungrouped(groups)[:, LEVEL].any()
    clip = toy_natural_clip(0, 2)
    seen = latent_clip(clip)
    assert len(seen.phones_of_frames) == LATENT_STRIDE * seen.frames
    middles = (np.arange(len(seen.phones_of_frames)) + 0.5) / 160
    for middle, place in zip(middles, seen.phones_of_frames, strict=True):
        name, start, end = clip.phones[place - 1]
        assert start <= middle < end
        assert PHONES[seen.phones[place - 1] - 1] == name


def test_the_export_is_read_as_the_transformer_of_a_bundled_folder(tmp_path: Path):
    run = mega()
    run.step(1, 0.1)
    awake(run.average.module)
    run.export(tmp_path)
    assert (tmp_path / TRANSFORMER / WEIGHTS).is_file()
    assert MegaMiniFolder.is_at(tmp_path)
    backbone = MegaMiniFolder(tmp_path).backbone()
    assert backbone.config == MEGA_SMALL
    assert (tmp_path / "vocab.txt").read_text(encoding="utf-8").split() == list(PHONES)
