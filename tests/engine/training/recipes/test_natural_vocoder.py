from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.audio.mel import MelFrontEnd
from paretone.audio.resampling import resample
from paretone.models.minis.natural.frame_rates import latent_frames
from paretone.models.minis.natural.layout import FORMANT, LEVEL, LEVEL_SCALE, VOICE
from paretone.models.minis.natural.mel_reader import MelReader, MelReaderConfig
from paretone.training.natural_corpus import voice_frames
from paretone.training.recipes.natural_vocoder import NaturalVocoder, VocoderOptions, band_limited, centres, mel_at
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_clip, toy_natural_corpus
from tests.workload import workload

CPU = torch.device("cpu")
SMALL = MelReaderConfig(width=48, inner_width=64, layers=1)
QUICK = VocoderOptions(frames=40, batch=4, warm_up=5, other_rate=5e-3, average_decay=0.9, validation_items=4)


def recipe(options: VocoderOptions = QUICK) -> NaturalVocoder:
    return NaturalVocoder(toy_natural_corpus(), CPU, options, SMALL)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_what_is_read_off_mels_of_other_voices_gets_better(half: bool):
    learnt = learning(recipe, replace(QUICK, half_precision=half), workload(40, 20), lambda number: 0.1)
    learnt.assert_validation_falls("components", "components_noised", "cents")
    learnt.assert_losses_fall("voice", "spectrum")


def test_an_excerpt_is_the_mel_at_the_frames_of_the_latents():
    clip = toy_natural_clip(0, 3, 90)
    count = latent_frames(clip.frames)
    whole = mel_at(clip, 0, count)
    for first in (0, 1, 17, count - 41):
        torch.testing.assert_close(mel_at(clip, first, 40), whole[:, first : first + 40])
    assert voice_frames(clip).shape == (90, VOICE)


def test_the_level_is_the_gain():
    run = recipe(replace(QUICK, largest_noise=0.0, largest_gain=0.5, band_limited=0.0))
    quiet = recipe(replace(QUICK, largest_noise=0.0, largest_gain=0.0, band_limited=0.0))
    (mel, wanted), (plain, _) = run._batch(), quiet._batch()
    gain = (mel - plain) * run.model.mel_scale[:, None]
    level = wanted[:, :, LEVEL] * LEVEL_SCALE
    assert level.abs().max() <= 0.5
    torch.testing.assert_close(gain.mean(1), level, atol=1e-4, rtol=1e-4)
    assert wanted[:, :, FORMANT].abs().max() < 2


def test_a_mel_without_its_highs_is_read_as_the_whole_one(tmp_path: Path):
    run = recipe(replace(QUICK, largest_noise=0.0, largest_gain=0.0, band_limited=1.0, highest_edge=3_500.0))
    plain = recipe(replace(QUICK, largest_noise=0.0, largest_gain=0.0, band_limited=0.0))
    (mel, wanted), (whole, same) = run._batch(), plain._batch()
    assert torch.equal(wanted, same), "what is to be read stays"
    model = run.model
    mel, whole = (one * model.mel_scale[:, None] + model.mel_mean[:, None] for one in (mel, whole))
    low = centres(mel.shape[1]) < 3_400
    torch.testing.assert_close(mel[:, low], whole[:, low])
    assert torch.all(mel[:, ~low] <= whole[:, ~low] + 1e-4) and mel[:, -1].max() < whole[:, -1].min()


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
    second = NaturalVocoder(toy_natural_corpus(), CPU, QUICK, initial=tmp_path)
    assert same_weights(second.model, MelReader.load(tmp_path))
    assert second.describe()["initial_weights"] != first.describe()["initial_weights"] == "random"
    before = second.model.out.weight.clone()
    second.step(1, 0.1)
    assert not torch.equal(second.model.out.weight, before)


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path):
    whole, resumed = whole_and_resumed(recipe, tmp_path)
    assert same_weights(resumed.model, whole.model)


def test_the_export_reads_mels_as_the_averaged_weights_do(tmp_path: Path):
    run = recipe()
    for number in range(1, 4):
        run.step(number, 0.1)
    run.export(tmp_path)
    loaded, mel = MelReader.load(tmp_path), torch.from_numpy(toy_natural_clip(0, 1).mel).float().T[None]
    assert loaded.config == SMALL
    with torch.no_grad():
        made = loaded(mel)
        torch.testing.assert_close(made, run.average.module(mel), atol=2e-2, rtol=2e-2)
    assert made.shape == (1, latent_frames(mel.shape[2]), VOICE)
