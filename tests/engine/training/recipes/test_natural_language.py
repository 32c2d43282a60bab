from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.front_end.natural.phones import PHONES
from engine.models.minis.folder import CONFIG, DURATIONS, LAYOUT_FILE, WEIGHTS
from engine.models.minis.lm_mini.layout import Layout as LmLayout
from engine.models.minis.natural.said import NaturalVoice
from engine.models.minis.omni_mini.layout import Layout as OmniLayout
from engine.training.natural_frames import voice_frames
from engine.training.recipes.lm_mini import ARCHITECTURE as LM_ARCHITECTURE
from engine.training.recipes.lm_mini import LmMiniOptions
from engine.training.recipes.natural_language import NaturalLm, NaturalOmni
from engine.training.recipes.natural_tokens import (
    CODEC,
    TOKENIZER,
    NaturalCodec,
    NaturalTokenizer,
    NaturalTokenOptions,
)
from engine.training.recipes.omni_mini import ARCHITECTURE as OMNI_ARCHITECTURE
from engine.training.recipes.omni_mini import OmniMiniOptions
from tests.engine.training.learning import learning
from tests.engine.training.toy_natural import toy_natural_corpus

CPU = torch.device("cpu")
TOKENS = NaturalTokenOptions(frames=40, batch=4, warm_up=5)
QUICK_LM = LmMiniOptions(positions=500, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4)
QUICK_OMNI = OmniMiniOptions(frames=120, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    small = replace(TOKENIZER, width=32, inner_width=48, levels=(4, 4, 3))
    NaturalTokenizer(toy_natural_corpus(), CPU, TOKENS, small).export(folder)
    return folder


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After some steps: codebooks begin empty."""
    folder = tmp_path_factory.mktemp("codec")
    run = NaturalCodec(toy_natural_corpus(), CPU, TOKENS, replace(CODEC, width=32, inner_width=48, codes=16))
    for number in range(1, 6):
        run.step(number, 0.1)
    run.export(folder)
    return folder


def lm(tokenizer: Path, work: Path, options: LmMiniOptions = QUICK_LM) -> NaturalLm:
    small = replace(LM_ARCHITECTURE, hidden=64, layers=2, heads=2, key_value_heads=2, head_width=32, feed_forward=96)
    return NaturalLm(toy_natural_corpus(), tokenizer, work, CPU, options, small)


def omni(codec: Path, work: Path, options: OmniMiniOptions = QUICK_OMNI) -> NaturalOmni:
    small = replace(OMNI_ARCHITECTURE, hidden=64, layers=2, heads=2, key_value_heads=1, head_width=32, feed_forward=96)
    return NaturalOmni(toy_natural_corpus(), codec, work, CPU, options, small)


def test_the_language_model_learns_what_is_said(tokenizer: Path, tmp_path: Path):
    learnt = learning(lambda options: lm(tokenizer, tmp_path, options), QUICK_LM, 30, lambda number: 0.1)
    learnt.assert_validation_falls("cross_entropy")


def test_the_masked_model_learns_what_is_said(codec: Path, tmp_path: Path):
    learnt = learning(lambda options: omni(codec, tmp_path, options), QUICK_OMNI, 30, lambda number: 0.1)
    learnt.assert_validation_falls("cross_entropy")


def test_tokens_and_phones_lie_beside_each_other(tokenizer: Path, codec: Path, tmp_path: Path):
    clips = toy_natural_corpus().training
    for clip, one in zip(clips, lm(tokenizer, tmp_path).data.training, strict=True):
        assert len(one.phones) == len(one.codes) == len(clip.latents) // 2
        assert one.phones.max() < len(PHONES)
    for clip, one in zip(clips, omni(codec, tmp_path).clips, strict=True):
        assert one.codes.shape == (len(clip.latents) // 4, CODEC.codebooks)
        assert len(one.phones) == len(one.codes)


def test_tokens_are_those_of_what_is_said_in_the_pitch_of_the_voice(tokenizer: Path, tmp_path: Path):
    run = lm(tokenizer, tmp_path)
    some = [clip for clip in toy_natural_corpus().training if clip.voice == "v001"]
    whole = NaturalVoice.of(torch.cat([voice_frames(clip) for clip in some]))
    assert run.voices["v001"] == whole


def test_the_exports_say_what_their_ids_mean_and_hold_their_codecs(tokenizer: Path, codec: Path, tmp_path: Path):
    lm(tokenizer, tmp_path / "lm-work").export(tmp_path / "lm")
    omni(codec, tmp_path / "omni-work").export(tmp_path / "omni")
    for folder, part in (("lm", "tokenizer"), ("omni", "codec")):
        root = tmp_path / folder
        assert (root / WEIGHTS).is_file()
        assert (root / part / WEIGHTS).is_file()
        assert json.loads((root / CONFIG).read_text(encoding="utf-8"))["architectures"]
        assert not (root / DURATIONS).exists()
    assert LmLayout.read(tmp_path / "lm" / LAYOUT_FILE).vocabulary.phones == PHONES
    assert OmniLayout.read(tmp_path / "omni" / LAYOUT_FILE).vocabulary.phones == PHONES
