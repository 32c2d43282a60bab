from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from paretone.models.minis.natural.layout import LATENT, PITCH
from paretone.models.minis.omni_mini.codec import ResidualCodec
from paretone.models.networks.quantised_mel import read_quantised_mel
from paretone.training.recipes.natural_tokens import (
    CODEC,
    TOKENIZER,
    NaturalCodec,
    NaturalTokenizer,
    NaturalTokenOptions,
)
from paretone.training.spoken_tokens import frame_phones
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_corpus
from tests.workload import crossed, workload

CPU = torch.device("cpu")
SMALL_TOKENIZER = replace(TOKENIZER, width=48, inner_width=64, encoder_frame_layers=1, decoder_frame_layers=1)
SMALL_CODEC = replace(CODEC, width=48, inner_width=64, encoder_frame_layers=1, decoder_frame_layers=1, codes=16)
QUICK = NaturalTokenOptions(frames=40, batch=4, warm_up=5, other_rate=5e-3, average_decay=0.9, validation_items=4)


def tokenizer(options: NaturalTokenOptions = QUICK) -> NaturalTokenizer:
    return NaturalTokenizer(toy_natural_corpus(), CPU, options, SMALL_TOKENIZER)


def codec(options: NaturalTokenOptions = QUICK) -> NaturalCodec:
    return NaturalCodec(toy_natural_corpus(), CPU, options, SMALL_CODEC)


@pytest.mark.parametrize(("recipe", "half"), crossed([tokenizer, codec], [False, True]))
def test_what_tokens_keep_of_held_out_speech_grows(recipe: type, half: bool):
    learnt = learning(recipe, replace(QUICK, half_precision=half), workload(60, 40), lambda number: 0.1)
    learnt.assert_validation_falls("components")
    learnt.assert_losses_fall("frame", "spectrum", "phone")
    assert learnt.taught.after["phones"] > learnt.taught.before["phones"]


def test_excerpts_hold_what_is_said_in_every_voice_alike():
    run = tokenizer(replace(QUICK, pitch_deviation=0.0))
    clip = run.corpus.training[0]
    raised = replace(clip, voice="raised", latents=clip.latents + np.eye(LATENT)[PITCH].astype(np.float16))
    run._voices["raised"] = replace(run._voices[clip.voice], pitch=run._voices[clip.voice].pitch + 1.0)
    state = run._draw.getstate()
    one, phones = run._excerpt(clip)
    run._draw.setstate(state)
    other, same_phones = run._excerpt(raised)
    torch.testing.assert_close(one, other, atol=2e-3, rtol=0)
    assert torch.equal(phones, same_phones)
    assert len(phones) == QUICK.frames // SMALL_TOKENIZER.stride


def test_phones_are_those_of_the_latent_frames():
    clip = toy_natural_corpus().training[3]
    found = frame_phones(clip)
    assert len(found) == len(clip.latents)
    assert len(set(found.tolist())) > 5


@pytest.mark.parametrize("recipe", [tokenizer, codec])
def test_a_resumed_run_ends_with_the_same_bits(recipe: type, tmp_path: Path):
    whole, resumed = whole_and_resumed(recipe, tmp_path)
    assert same_weights(resumed.average.module, whole.average.module)


@pytest.mark.parametrize(("recipe", "kind"), [(tokenizer, SpeechTokenizer), (codec, ResidualCodec)])
def test_the_export_is_a_codec_that_models_load(recipe: type, kind: type, tmp_path: Path):
    run = recipe()
    for number in range(1, 4):
        run.step(number, 0.1)
    run.export(tmp_path)
    loaded = read_quantised_mel(tmp_path, kind)
    said = torch.randn(1, 16, LATENT)
    with torch.no_grad():
        torch.testing.assert_close(loaded.latents(said), run.average.module.codec.latents(said), atol=2e-2, rtol=2e-2)
    assert loaded.encode(said).shape[1] == 16 // loaded.config.stride
