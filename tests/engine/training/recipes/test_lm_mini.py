"""What flite's recipe adds to that of language models: tokens of mels, and the mean durations of phones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from engine.front_end.frame_phones import labels
from engine.models.minis.frames import token_phones
from engine.models.minis.lm_mini.checkpoint import LmMiniFolder
from engine.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer, SpeechTokenizerConfig
from engine.models.networks.quantised_mel import read_quantised_mel
from engine.training.recipes.lm_mini import LmMini
from engine.training.recipes.lm_recipe import SMALL_LM, LmOptions, layout_of
from engine.training.recipes.mel_excerpts import VOCABULARY
from engine.training.recipes.speech_tokenizer import SpeechTokenizerOptions, SpeechTokenizerRecipe
from tests.engine.training.toy_corpus import toy_corpus

CPU = torch.device("cpu")
SMALL = replace(SMALL_LM, hidden=32, layers=2, heads=2, key_value_heads=2, head_width=16, feed_forward=48)
TOKENIZER = SpeechTokenizerConfig(
    width=16,
    inner_width=24,
    encoder_frame_layers=1,
    encoder_token_layers=1,
    decoder_token_layers=1,
    decoder_frame_layers=1,
)


def test_tokens_have_their_phones_and_the_export_their_durations(tmp_path: Path):
    options, kept = SpeechTokenizerOptions(frames=32, batch=8), tmp_path / "tokenizer"
    SpeechTokenizerRecipe(toy_corpus(), CPU, options, TOKENIZER).export(kept)
    run = LmMini(toy_corpus(), kept, tmp_path / "work", CPU, LmOptions(positions=600, validation_items=4), SMALL)
    model, _ = read_quantised_mel(kept, SpeechTokenizer)
    for ours, clip in zip(run.data.training, toy_corpus().training, strict=True):
        assert np.array_equal(ours.phones, token_phones(labels(clip.phones, clip.frames, VOCABULARY), 2))
        codes = model.encode(torch.from_numpy(clip.mel.astype(np.float32))[None])[0]
        assert np.array_equal(ours.codes, codes.numpy())
        assert len(ours.phones) == len(ours.codes) == clip.frames // 2
    run.export(tmp_path / "export")
    folder = LmMiniFolder(tmp_path / "export")
    assert folder.layout() == layout_of(VOCABULARY, 1920)
    assert folder.durations()
