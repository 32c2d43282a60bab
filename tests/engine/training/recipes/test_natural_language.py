from __future__ import annotations

import json
from pathlib import Path

import torch

from engine.front_end.natural.phones import PHONES
from engine.models.minis.folder import CONFIG, DURATIONS, LAYOUT_FILE, WEIGHTS
from engine.models.minis.lm_mini.layout import Layout as LmLayout
from engine.models.minis.natural.said import NaturalVoice
from engine.models.minis.omni_mini.layout import Layout as OmniLayout
from engine.training.natural_frames import voice_frames
from engine.training.recipes.natural_tokens import CODEC
from tests.engine.training.recipes.natural_models import codec, lm, omni, tokenizer  # noqa: F401
from tests.engine.training.toy_natural import toy_natural_corpus


def test_tokens_and_phones_lie_beside_each_other(tokenizer: Path, codec: Path, tmp_path: Path):  # noqa: F811
    clips = toy_natural_corpus().training
    for clip, one in zip(clips, lm(tokenizer, tmp_path).data.training, strict=True):
        assert len(one.phones) == len(one.codes) == len(clip.latents) // 2
        assert one.phones.max() < len(PHONES)
    for clip, one in zip(clips, omni(codec, tmp_path).clips, strict=True):
        assert one.codes.shape == (len(clip.latents) // 4, CODEC.codebooks)
        assert len(one.phones) == len(one.codes)


def test_tokens_are_those_of_what_is_said_in_the_pitch_of_the_voice(tokenizer: Path, tmp_path: Path):  # noqa: F811
    run = lm(tokenizer, tmp_path)
    some = [clip for clip in toy_natural_corpus().training if clip.voice == "v001"]
    whole = NaturalVoice.of(torch.cat([voice_frames(clip) for clip in some]))
    assert run.voices["v001"] == whole


def test_the_exports_say_what_their_ids_mean_and_hold_their_codecs(tokenizer: Path, codec: Path, tmp_path: Path):  # noqa: F811
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
