"""Recipes of what is around the models of natural speech: tokens, codec, vocoder."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.audio.mel import MelFrontEnd
from paretone.audio.resampling import resample
from paretone.models.f5.dit import DiT
from paretone.models.minis.natural_decoder import LATENT, VOICE
from paretone.models.minis.natural_vocoder import MelReader, MelReaderConfig, latent_frames
from paretone.models.networks.quantised_mel import ResidualCodec, SpeechTokenizer, read_quantised_mel
from paretone.training.features import Example, collate
from paretone.training.flow_matching import FlowMatchingOptions, draw_problem, predicted_velocity
from paretone.training.natural_corpus import voice_frames
from paretone.training.recipes.natural_codecs import (
    CODEC,
    TOKENIZER,
    NaturalCodec,
    NaturalTokenizer,
    NaturalTokenOptions,
    NaturalVocoder,
    VocoderOptions,
    band_limited,
    centres,
    mel_at,
)
from paretone.training.recipes.natural_f5 import ARCHITECTURE, MelNormalisation
from paretone.training.spoken_tokens import frame_phones
from tests.engine.training.learning import exported, same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_clip, toy_natural_corpus

CPU = torch.device("cpu")
SMALL_TOKENIZER = replace(TOKENIZER, width=48, inner_width=64, encoder_frame_layers=1, decoder_frame_layers=1)
SMALL_CODEC = replace(CODEC, width=48, inner_width=64, encoder_frame_layers=1, decoder_frame_layers=1, codes=16)
QUICK = NaturalTokenOptions(frames=40, batch=4, warm_up=5, other_rate=5e-3, average_decay=0.9, validation_items=4)


def tokenizer(options: NaturalTokenOptions = QUICK) -> NaturalTokenizer:
    return NaturalTokenizer(toy_natural_corpus(), CPU, options, SMALL_TOKENIZER)


def codec(options: NaturalTokenOptions = QUICK) -> NaturalCodec:
    return NaturalCodec(toy_natural_corpus(), CPU, options, SMALL_CODEC)


@pytest.mark.parametrize(("recipe", "kind"), [(tokenizer, SpeechTokenizer), (codec, ResidualCodec)])
def test_the_export_is_a_codec_that_models_load(recipe: type, kind: type, tmp_path: Path):
    run = exported(recipe(), tmp_path)
    loaded = read_quantised_mel(tmp_path, kind)
    said = torch.randn(1, 16, LATENT)
    with torch.no_grad():
        torch.testing.assert_close(loaded.latents(said), run.average.module.codec.latents(said), atol=2e-2, rtol=2e-2)
    assert loaded.encode(said).shape[1] == 16 // loaded.config.stride


SMALL = MelReaderConfig(width=48, inner_width=64, layers=1)
QUICK_READER = VocoderOptions(frames=40, batch=4, warm_up=5, other_rate=5e-3, average_decay=0.9, validation_items=4)


def recipe(options: VocoderOptions = QUICK_READER) -> NaturalVocoder:
    return NaturalVocoder(toy_natural_corpus(), CPU, options, SMALL)


def test_an_excerpt_is_the_mel_at_the_frames_of_the_latents():
    clip = toy_natural_clip(0, 3, 90)
    count = latent_frames(clip.frames)
    whole = mel_at(clip, 0, count)
    for first in (0, 1, 17, count - 41):
        torch.testing.assert_close(mel_at(clip, first, 40), whole[:, first : first + 40])
    assert voice_frames(clip).shape == (90, VOICE)
    clip = toy_natural_corpus().training[3]
    found = frame_phones(clip)
    assert len(found) == len(clip.latents)
    assert len(set(found.tolist())) > 5


def test_the_mel_of_a_low_passed_sound_is_the_limited_mel():
    """By a real filter: resampling to 16 kHz and back leaves nothing above 8 kHz."""
    samples = np.random.default_rng(0).normal(0, 0.1, 24_000).astype(np.float32)
    front_end = MelFrontEnd()
    lacking = resample(resample(samples, 24_000, 16_000), 16_000, 24_000)
    whole, heard = (front_end(torch.from_numpy(one[:23_000])[None]).mT for one in (samples, lacking))
    made = band_limited(whole, *torch.tensor([[7_400.0], [600.0], [14.0]]))
    clear = (centres(100) < 7_000) | (centres(100) > 8_600)
    assert (made - heard)[:, clear, 4:-4].abs().mean() < 0.3
    assert (whole - heard)[:, clear, 4:-4].abs().mean() > 1


def test_a_run_starts_from_exported_weights(tmp_path: Path):
    first = recipe()
    first.step(1, 0.1)
    first.export(tmp_path)
    second = NaturalVocoder(toy_natural_corpus(), CPU, QUICK_READER, initial=tmp_path)
    assert same_weights(second.model, MelReader.load(tmp_path))
    assert second.describe()["initial_weights"] != first.describe()["initial_weights"] == "random"
    before = second.model.out.weight.clone()
    second.step(1, 0.1)
    assert not torch.equal(second.model.out.weight, before)


@pytest.mark.parametrize("make", [tokenizer, codec, recipe])
def test_a_resumed_run_ends_with_the_same_bits(make: type, tmp_path: Path):
    whole, resumed = whole_and_resumed(make, tmp_path)
    assert same_weights(resumed.average.module, whole.average.module)


def test_the_export_reads_mels_as_the_averaged_weights_do(tmp_path: Path):
    run = exported(recipe(), tmp_path)
    loaded, mel = MelReader.load(tmp_path), torch.from_numpy(toy_natural_clip(0, 1).mel).float().T[None]
    assert loaded.config == SMALL
    with torch.no_grad():
        made = loaded(mel)
        torch.testing.assert_close(made, run.average.module(mel), atol=2e-2, rtol=2e-2)
    assert made.shape == (1, latent_frames(mel.shape[2]), VOICE)


SMALL_FLOW = replace(ARCHITECTURE, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)


def test_normalised_mels_fold_into_the_model():
    torch.manual_seed(0)
    clips = toy_natural_corpus().training
    normalisation = MelNormalisation.of([clip.mel for clip in clips])
    model = DiT(SMALL_FLOW).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    before = copy.deepcopy(model.state_dict())
    seen = [Example(one.voice, torch.randint(9, (one.frames,)).numpy(), one.mel) for one in clips[:3]]
    batch = collate([seen[:2], seen[2:]])
    problem = draw_problem(batch, FlowMatchingOptions(), torch.Generator().manual_seed(1))
    inside = normalisation.velocity(predicted_velocity(model, batch.ids, normalisation.problem(problem)))
    outside = predicted_velocity(normalisation.folded(model), batch.ids, problem)
    torch.testing.assert_close(outside[batch.mask], inside[batch.mask], atol=1e-3, rtol=1e-3)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    again = normalisation.unfolded(normalisation.folded(model)).state_dict()
    for name, value in before.items():
        torch.testing.assert_close(again[name], value, atol=1e-5, rtol=1e-4)
