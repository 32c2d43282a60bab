from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer, SpeechTokenizerConfig
from engine.models.networks.quantised_mel import read_quantised_mel
from engine.training.recipes.mel_excerpts import VOCABULARY
from engine.training.recipes.speech_tokenizer import SpeechTokenizerOptions, SpeechTokenizerRecipe
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_corpus import toy_corpus

CPU = torch.device("cpu")
SMALL = SpeechTokenizerConfig(
    width=32,
    inner_width=48,
    encoder_frame_layers=1,
    encoder_token_layers=1,
    decoder_token_layers=1,
    decoder_frame_layers=1,
)
QUICK = SpeechTokenizerOptions(frames=32, batch=8, warm_up=5, average_decay=0.9)


def recipe(options: SpeechTokenizerOptions = QUICK) -> SpeechTokenizerRecipe:
    return SpeechTokenizerRecipe(toy_corpus(), CPU, options, SMALL)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_copies_get_better_and_codes_tell_phones_apart(half: bool):
    learnt = learning(recipe, replace(QUICK, half_precision=half), 40, lambda number: 0.1)
    learnt.assert_validation_falls("mel")
    learnt.assert_losses_fall("phone")
    run = learnt.taught
    assert run.after["phones"] > max(run.before["phones"], learnt.control.after["phones"])
    assert all(value.dtype == torch.float32 for value in run.recipe.model.parameters())


def test_the_voice_is_told_by_the_mean_over_clips_of_its_own():
    run = recipe()
    means = run.voices()
    assert set(means) == {"slt", "rms"}
    # The toy voices differ in pitch, so means of one are nearer to each other than to the other's.
    own = (run._some_mean("slt") - means["slt"]).abs().mean()
    other = (run._some_mean("slt") - means["rms"]).abs().mean()
    assert own < other


def test_excerpts_have_a_phone_for_every_frame():
    excerpt = recipe()._excerpt()
    assert excerpt.mel.shape == (32, 100)
    assert excerpt.phones.shape == (32,)
    assert excerpt.phones.max() < len(VOCABULARY.phones)


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path):
    whole, resumed = whole_and_resumed(recipe, tmp_path)
    assert same_weights(resumed.average.module, whole.average.module)


def test_the_export_is_a_tokenizer_that_the_model_loads(tmp_path: Path):
    run = recipe()
    for number in range(1, 4):
        run.step(number, 0.1)
    run.export(tmp_path)
    loaded, voices = read_quantised_mel(tmp_path, SpeechTokenizer)
    assert loaded.config == SMALL
    for name, mean in voices.items():
        torch.testing.assert_close(mean, run.voices()[name], atol=1e-4, rtol=0)
    ours = run.average.module.state_dict()
    for name, value in loaded.state_dict().items():
        torch.testing.assert_close(value, ours[name], atol=1e-2, rtol=1e-3)
