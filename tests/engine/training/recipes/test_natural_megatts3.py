from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.front_end.natural.phones import PHONES
from paretone.models.megatts3.checkpoint import TRANSFORMER
from paretone.models.megatts3.config import LATENT_STRIDE
from paretone.models.minis.folder import WEIGHTS
from paretone.models.minis.megatts3_mini.checkpoint import MegaMiniFolder
from paretone.models.minis.natural.grouped import GROUPED, ungrouped
from paretone.models.minis.natural.layout import LEVEL
from paretone.paths import resource
from paretone.training.natural_corpus import AlignmentOptions, evened, voice_frames
from paretone.training.recipes.natural_megatts3 import (
    ARCHITECTURE,
    NaturalMega,
    NaturalMegaOptions,
    groups_of,
    latent_clip,
)
from tests.engine.awake import awake
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_clip, toy_natural_corpus
from tests.workload import workload

CPU = torch.device("cpu")
SMALL = replace(
    ARCHITECTURE,
    dim=64,
    layers=2,
    heads=1,
    ff_hidden=96,
    local_cond=32,
    phone_layers=1,
    phone_heads=2,
    phone_ff_hidden=64,
)
QUICK = NaturalMegaOptions(
    frames=200, matrix_rate=0.05, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4
)


def recipe(options: NaturalMegaOptions = QUICK) -> NaturalMega:
    return NaturalMega(toy_natural_corpus(), CPU, options, SMALL)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_the_held_out_loss_falls_at_both_times(half: bool):
    learnt = learning(recipe, replace(QUICK, half_precision=half), workload(50, 30), lambda number: number / 51)
    assert set(learnt.taught.before) == {"t=0.05", "t=0.40"}
    learnt.assert_validation_falls("t=0.05", "t=0.40")


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path):
    whole, resumed = whole_and_resumed(recipe, tmp_path)
    assert same_weights(resumed.model, whole.model)


def test_groups_hold_everything_but_the_level():
    clip = toy_natural_clip(3, 1, 61)
    frames = voice_frames(clip)
    groups = groups_of(clip)
    assert groups.shape == (30, GROUPED)
    torch.testing.assert_close(ungrouped(groups)[:, :LEVEL], frames[:60, :LEVEL])
    assert not ungrouped(groups)[:, LEVEL].any()


def test_the_phone_that_sounds_is_named_for_every_frame_of_the_duration_clock():
    clip = toy_natural_clip(0, 2)
    seen = latent_clip(clip)
    assert len(seen.phones_of_frames) == LATENT_STRIDE * seen.frames
    middles = (np.arange(len(seen.phones_of_frames)) + 0.5) / 160
    for middle, place in zip(middles, seen.phones_of_frames, strict=True):
        name, start, end = clip.phones[place - 1]
        assert start <= middle < end
        assert PHONES[seen.phones[place - 1] - 1] == name


def test_text_is_aligned_by_word_where_the_options_ask_for_it():
    options = AlignmentOptions(exact_until=0.0, inexact_share=0.0, evened_share=1.0)
    run = recipe(replace(QUICK, alignment=options))
    (seen,) = run.seen(run.clips[:1])
    np.testing.assert_array_equal(seen.phones_of_frames, latent_clip(run.clips[0].clip, evened).phones_of_frames)


def test_the_bundled_model_is_that_of_the_recipe_and_its_log():
    folder = resource("models", "megatts3-mini")
    backbone = MegaMiniFolder(folder).backbone()
    assert backbone.config == ARCHITECTURE
    files = [one for one in folder.rglob("*") if one.is_file() and one.parent.name != "intervals"]
    assert {one.relative_to(folder).as_posix() for one in files} == {
        "training.jsonl",
        "vocab.txt",
        f"{TRANSFORMER}/config.yaml",
        f"{TRANSFORMER}/{WEIGHTS}",
    }
    assert sum(one.stat().st_size for one in files) <= 30_000_000
    assert MegaMiniFolder(folder).vocabulary().phones == PHONES
    header = json.loads((folder / "training.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert header["recipe"] == NaturalMega.name
    assert header["parameters"] == sum(one.numel() for one in backbone.parameters())
    assert header["options"].keys() == set(NaturalMegaOptions.__dataclass_fields__)


def test_the_export_is_read_as_the_transformer_of_a_bundled_folder(tmp_path: Path):
    run = recipe()
    run.step(1, 0.1)
    awake(run.average.module)
    run.export(tmp_path)
    assert (tmp_path / TRANSFORMER / WEIGHTS).is_file()
    assert MegaMiniFolder.is_at(tmp_path)
    backbone = MegaMiniFolder(tmp_path).backbone()
    assert backbone.config == SMALL
    assert (tmp_path / "vocab.txt").read_text(encoding="utf-8").split() == list(PHONES)
