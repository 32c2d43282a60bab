from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import yaml

from engine.front_end.phones import PhoneVocabulary
from engine.models.f5.dit import DiT
from engine.paths import resource
from engine.training.batch_queue import BatchQueue
from engine.training.recipes import f5_mini
from engine.training.recipes.durations import duration_table
from engine.training.recipes.f5_mini import ARCHITECTURE, VOCABULARY, F5Mini
from engine.training.recipes.f5_recipe import F5Options
from tests.engine.training.learning import learning
from tests.engine.training.toy_corpus import toy_clip, toy_corpus
from tests.workload import workload

SMALL = replace(ARCHITECTURE, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)
CPU = torch.device("cpu")
QUICK = F5Options(frames=300, matrix_rate=0.05, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4)


def test_the_vocabulary_is_that_of_the_bundled_model():
    assert PhoneVocabulary.load(resource("models", "f5-mini", "vocab.txt")) == VOCABULARY


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_the_held_out_loss_falls_at_both_times(half: bool):
    def make(options: F5Options) -> F5Mini:
        return F5Mini(toy_corpus(), CPU, options, SMALL)

    learnt = learning(make, replace(QUICK, half_precision=half), workload(40, 24), lambda number: number / 41)
    assert set(learnt.taught.before) == {"t=0.05", "t=0.40"}
    learnt.assert_validation_falls("t=0.05", "t=0.40")
    assert all(value.dtype == torch.float32 for value in learnt.taught.recipe.model.parameters())


def test_a_fresh_model_says_the_mean():
    corpus = toy_corpus()
    recipe = F5Mini(corpus, CPU, F5Options(), SMALL)
    mean = np.concatenate([clip.mel for clip in corpus.training[::7]]).astype(np.float32).mean(0)
    with torch.no_grad():
        run = recipe.model.begin(
            torch.zeros(1, 9, 100), torch.zeros(1, 9, dtype=torch.long), np.zeros(1, np.float32), False
        )
        velocity = recipe.model.velocity(torch.randn(1, 9, 100), 0, run)
    torch.testing.assert_close(velocity[0], torch.from_numpy(mean).expand(9, -1), atol=1e-4, rtol=0)


def test_all_parameters_learn():
    recipe = F5Mini(toy_corpus(), CPU, F5Options(frames=500, warm_up=0), SMALL)
    before = {name: value.clone() for name, value in recipe.model.named_parameters()}
    for number in range(1, 4):
        recipe.step(number, 0.1)
    still = [name for name, value in recipe.model.named_parameters() if torch.equal(value, before[name])]
    assert still == []


def test_batches_hold_no_more_frames_than_asked_and_join_one_voice_only():
    clips = toy_corpus(20).training
    queue = BatchQueue(clips, frames=600, joined_share=0.5, seed=0)
    joined = total = 0
    for _ in range(200):
        batch = queue.next()
        lengths = [sum(clips[number].frames for number in item) for item in batch]
        assert max(lengths) * len(batch) <= 600
        assert all(len({clips[number].voice for number in item}) == 1 for item in batch)
        joined += sum(len(item) == 2 for item in batch)
        total += len(batch)
    assert 0.4 < joined / total < 0.6


@pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")
def test_the_export_is_an_official_folder(tmp_path: Path):
    from engine.models.files.checkpoints import load_strictly, read_weights

    recipe = F5Mini(toy_corpus(), CPU, F5Options(frames=500), SMALL)
    recipe.step(1, 0.5)
    recipe.export(tmp_path)

    weights = read_weights(tmp_path / "model.safetensors")
    assert int(weights.pop("step")) == 1
    assert bool(weights.pop("initted")) is True
    prefix = "ema_model.transformer."
    assert all(name.startswith(prefix) for name in weights)
    assert weights[prefix + "rotary_embed.inv_freq"].dtype == torch.float32
    assert weights[prefix + "proj_out.weight"].dtype == torch.float16
    model = DiT(SMALL)
    load_strictly(model, {name.removeprefix(prefix): value.float() for name, value in weights.items()}, "export")
    for name, value in recipe.average.module.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, atol=1e-3, rtol=1e-3)

    assert (tmp_path / "vocab.txt").read_bytes() == resource("models", "f5-mini", "vocab.txt").read_bytes()
    ours = yaml.safe_load((tmp_path / "model.yaml").read_text(encoding="utf-8"))["model"]
    bundled = yaml.safe_load(resource("models", "f5-mini", "model.yaml").read_text(encoding="utf-8"))["model"]
    assert ours.keys() == bundled.keys()
    assert ours["arch"].keys() >= bundled["arch"].keys()
    assert {name: ours[name] for name in ours if name != "arch"} == {
        name: bundled[name] for name in bundled if name != "arch"
    }
    for voice in ("slt", "rms"):
        info = soundfile.info(tmp_path / "voices" / f"{voice}.wav")
        assert (info.samplerate, info.channels, info.subtype) == (24_000, 1, "PCM_24")
        data = json.loads((tmp_path / "voices" / f"{voice}.json").read_text(encoding="utf-8"))
        assert data["phones"][-1][2] == pytest.approx(info.duration, abs=1e-3)
        VOCABULARY.ids(phone for phone, _, _ in data["phones"])


def test_the_duration_table_holds_means_of_what_is_frequent_and_of_every_phone():
    clips = [toy_clip("slt", seed, 200) for seed in range(20)]
    table = duration_table(clips, VOCABULARY.phones)
    seconds = [end - start for clip in clips for phone, start, end in clip.phones[:-1] if phone == "iy"]
    assert table["iy"] == pytest.approx(np.mean(seconds), abs=1e-4)
    assert {key for key in table if "/" not in key} == set(VOCABULARY.phones)
    assert table["zh"] == pytest.approx(
        np.mean([end - start for clip in clips for _, start, end in clip.phones[:-1]]), abs=1e-4
    )
    assert all(value > 0 for value in table.values())
    rare = duration_table(clips[:1], VOCABULARY.phones)
    assert not any(key.count("/") == 3 for key in rare)


def test_the_duration_table_is_close_to_the_bundled_one_in_its_keys():
    bundled = json.loads(resource("models", "f5-mini", "durations.json").read_text(encoding="utf-8"))["voices"]["slt"]
    phones = [key for key in bundled if "/" not in key]
    assert set(phones) == set(f5_mini.VOCABULARY.phones)
    assert all(key.split("/")[0] in phones for key in bundled)
