from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.models.minis.natural.frame_rates import latent_frames
from engine.models.minis.natural.layout import FORMANT, LEVEL, LEVEL_SCALE, VOICE
from engine.models.minis.natural.mel_reader import MelReader, MelReaderConfig
from engine.training.natural_frames import voice_frames
from engine.training.recipes.natural_vocoder import NaturalVocoder, VocoderOptions, mel_at
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
    run = recipe(replace(QUICK, largest_noise=0.0, largest_gain=0.5))
    quiet = recipe(replace(QUICK, largest_noise=0.0, largest_gain=0.0))
    (mel, wanted), (plain, _) = run._batch(), quiet._batch()
    gain = (mel - plain) * run.model.mel_scale[:, None]
    level = wanted[:, :, LEVEL] * LEVEL_SCALE
    assert level.abs().max() <= 0.5
    torch.testing.assert_close(gain.mean(1), level, atol=1e-4, rtol=1e-4)
    assert wanted[:, :, FORMANT].abs().max() < 2


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
