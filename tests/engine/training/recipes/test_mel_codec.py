from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.models.minis.megatts3_mini.mel_codec import MelCodec, MelCodecConfig
from engine.training.recipes.mel_codec import MelCodecOptions, MelCodecRecipe
from engine.training.session import LOG
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_corpus import toy_corpus

CPU = torch.device("cpu")
SMALL = MelCodecConfig(width=32, inner_width=48, frame_layers=1, latent_layers=1)
QUICK = MelCodecOptions(frames=32, batch=8, warm_up=5, average_decay=0.9)


def recipe(options: MelCodecOptions = QUICK) -> MelCodecRecipe:
    return MelCodecRecipe(toy_corpus(), CPU, options, SMALL)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_copies_get_better_and_latents_have_variance_one(half: bool):
    learnt = learning(recipe, replace(QUICK, half_precision=half), 30, lambda number: 0.1)
    learnt.assert_validation_falls("mel", "mel_noised")
    # The classifier's scores are at the frames that they are about, or it would not learn this quickly.
    learnt.assert_losses_fall("phone")
    run = learnt.taught
    off = [abs(np.log(one["latent_deviation"])) for one in (run.before, run.after)]
    assert off[1] < off[0] / 2, "the latents' deviation comes closer to one"
    assert all(value.dtype == torch.float32 for value in run.recipe.model.parameters())


def test_the_encoder_sees_a_lifted_floor_and_the_decoder_is_to_give_without():
    run = recipe(replace(QUICK, lifted_share=1.0))
    seen, wanted = run._seen([run._excerpt() for _ in range(8)])
    lift = seen - wanted
    assert (lift > 0).all()
    quiet, loud = wanted < wanted.quantile(0.05), wanted > wanted.median()
    assert float(lift[quiet].mean()) > 3 * float(lift[loud].mean())
    run = recipe(replace(QUICK, lifted_share=0.0))
    clean, same = run._seen([run._excerpt() for _ in range(8)])
    assert torch.equal(clean, same)


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path):
    whole, resumed = whole_and_resumed(recipe, tmp_path)
    assert same_weights(resumed.model, whole.model)
    assert same_weights(resumed.average.module, whole.average.module)
    assert same_weights(resumed.classifier, whole.classifier)
    header = json.loads((tmp_path / "whole" / LOG).read_text(encoding="utf-8").splitlines()[0])
    assert header["recipe"] == "mel-codec"


def test_the_export_holds_the_averaged_weights_with_the_latents_statistics(tmp_path: Path):
    run = recipe()
    for number in range(1, 4):
        run.step(number, 0.1)
    run.export(tmp_path)
    loaded = MelCodec.load(tmp_path)
    ours = run.average.module.state_dict()
    for name, value in loaded.state_dict().items():
        torch.testing.assert_close(value, ours[name], atol=1e-2, rtol=1e-3)
    assert not torch.equal(loaded.encoder["normalise"].running_mean, torch.zeros(32))
