"""What flite's recipe adds to that of masked models: codes of mels, and the mean durations of phones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from engine.front_end.frame_phones import labels
from engine.models.minis.omni_mini.checkpoint import OmniMiniFolder
from engine.models.minis.omni_mini.codec import ResidualCodec, ResidualCodecConfig
from engine.models.networks.quantised_mel import read_quantised_mel
from engine.training.recipes.codec_mini import CodecMiniOptions, CodecMiniRecipe
from engine.training.recipes.omni_mini import LAYOUT, OmniMini
from engine.training.recipes.omni_recipe import SMALL_OMNI, OmniOptions
from tests.engine.training.toy_corpus import toy_corpus

CPU = torch.device("cpu")
SMALL = replace(SMALL_OMNI, hidden=32, layers=2, heads=2, key_value_heads=1, head_width=16, feed_forward=48)
SIZES = ResidualCodecConfig(
    codebooks=3,
    codes=16,
    numbers=6,
    width=16,
    inner_width=24,
    encoder_frame_layers=1,
    encoder_token_layers=1,
    decoder_token_layers=1,
    decoder_frame_layers=1,
)


def test_codes_have_their_phones_and_the_export_their_durations(tmp_path: Path):
    made = CodecMiniRecipe(toy_corpus(), CPU, CodecMiniOptions(frames=32, batch=8, warm_up=5), SIZES)
    for number in range(1, 6):
        made.step(number, 0.1)
    made.export(tmp_path / "codec")
    options = OmniOptions(frames=300, validation_items=4)
    run = OmniMini(toy_corpus(), tmp_path / "codec", tmp_path / "work", CPU, options, SMALL)
    model, _ = read_quantised_mel(tmp_path / "codec", ResidualCodec)
    for ours, clip in zip(run.clips, toy_corpus().training, strict=True):
        text = LAYOUT.text(labels(clip.phones, clip.frames, LAYOUT.vocabulary), 4)
        assert np.array_equal(ours.phones, text)
        codes = model.encode(torch.from_numpy(clip.mel.astype(np.float32))[None])[0]
        assert np.array_equal(ours.codes, codes.numpy())
        assert len(ours.phones) == len(ours.codes) == clip.frames // 4
    run.export(tmp_path / "export")
    folder = OmniMiniFolder(tmp_path / "export")
    assert folder.layout() == LAYOUT
    assert folder.durations()
