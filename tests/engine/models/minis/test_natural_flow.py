"""Flow models of natural speech, small ones as their recipes export them, from text to audio."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import save_file

from paretone.errors import CheckpointError, TextError
from paretone.front_end.phones import EDGE
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import NaturalReader
from paretone.models import load_model
from paretone.models.base import SpeechModel, Voice
from paretone.models.catalogue import entry
from paretone.models.f5.config import NATURAL_PHONES
from paretone.models.minis.megatts3_mini import phones_of_frames
from paretone.models.minis.natural_vocoder import GROUP_HOP, MelReader, MelReaderConfig
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from paretone.training.recipes import natural_f5, natural_megatts3
from tests.engine.awake import awake
from tests.engine.small_vocos import write_vocos
from tests.engine.training.toy_natural import toy_natural_corpus

F5, MEGA = "f5-mini", "megatts3-mini"
SMALL_F5 = replace(natural_f5.ARCHITECTURE, dim=64, depth=1, heads=1, dim_head=64, text_dim=32, conv_layers=1)
SMALL_MEGA = replace(
    natural_megatts3.ARCHITECTURE,
    dim=64,
    layers=1,
    heads=1,
    ff_hidden=96,
    local_cond=32,
    phone_layers=1,
    phone_heads=2,
    phone_ff_hidden=64,
)
READER = MelReaderConfig(width=16, inner_width=24, layers=1)
ROUNDED = {F5: 512, MEGA: 2 * GROUP_HOP}
"""Samples by which a take may differ from its phones."""


def test_frames_get_the_phone_at_their_middle_counted_from_one():
    phones = [("s", 0.0, 0.2), ("ˈi", 0.2, 0.5), (EDGE, 0.5, 0.55)]
    places = phones_of_frames(phones, 8, rate=100, hop=10)
    assert places.tolist() == [1, 1, 2, 2, 2, 3, 3, 3]  # The sixth frame's middle is the silence's end.
    assert places.dtype == np.int64


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models as the recipes export them, with a vocoder next to them."""
    root, corpus, cpu = tmp_path_factory.mktemp("natural"), toy_natural_corpus(), torch.device("cpu")
    for name, run in (
        (F5, natural_f5.NaturalF5(corpus, cpu, natural_f5.NaturalF5Options(), SMALL_F5)),
        (MEGA, natural_megatts3.NaturalMega(corpus, cpu, natural_megatts3.NaturalMegaOptions(), SMALL_MEGA)),
    ):
        awake(run.average.module)
        run.export(root / name)
    vocoder = root / entry(MEGA).vocoder
    vocoder.mkdir()
    (vocoder / "config.json").write_text(json.dumps({"mel_reader": asdict(READER)}), encoding="utf-8")
    save_file(MelReader(READER).state_dict(), vocoder / "model.safetensors")
    return root


@pytest.fixture(scope="module", params=[F5, MEGA])
def model(request: pytest.FixtureRequest, root: Path) -> SpeechModel:
    return load_model(request.param, folder=str(root / request.param), device="cpu")


@pytest.fixture
def toy(tmp_path: Path) -> Voice:
    """A second of a tone that comes and goes, with phones."""
    times = np.arange(24_000) / 24_000
    path = tmp_path / "voice.wav"
    soundfile.write(path, 0.2 * np.sin(2 * np.pi * 200 * times) * np.sin(np.pi * times), 24_000)
    return Voice("toy", "Toy", str(path), "Hello.", (("^", 0.0, 0.4), ("h", 0.4, 1.0)))


def spoken(model: SpeechModel, text: str, voice: Voice, seed: int = 0) -> np.ndarray:
    setting = Setting(model.info.id, entry(model.info.id).options_with(steps=1), seed=seed)
    return synthesise(model, text, voice, setting).samples


def test_text_is_read_as_the_phones_of_natural_speech_and_lasts_as_long(model: SpeechModel, toy: Voice):
    assert model.info.text_front_end == NATURAL_PHONES
    text = "Is it 5:30 already?"
    samples = spoken(model, text, toy)
    (piece,), _ = NaturalReader().pieces(text, HowToRead(seed=0))
    assert len(samples) == pytest.approx(piece.seconds * 24_000, abs=ROUNDED[model.info.id])
    assert np.isfinite(samples).all()


def test_the_pace_is_drawn_from_the_seed(model: SpeechModel, toy: Voice):
    takes = [spoken(model, "Good morning.", toy, seed) for seed in (3, 3, 5)]
    assert np.array_equal(takes[0], takes[1])
    assert len({len(one) for one in takes}) > 1


def test_phones_of_a_recording_without_any_or_of_another_alphabet_are_found_in_it(model: SpeechModel, toy: Voice):
    found = spoken(model, "Good morning.", replace(toy, transcript="Hello there.", phones=()))
    assert np.isfinite(found).all() and len(found) > 10_000
    other, own = (spoken(model, "Hello.", replace(toy, phones=phones)) for phones in ((("hh", 0.0, 1.0),), ()))
    assert np.array_equal(other, own)


def test_a_phone_that_the_model_does_not_have_is_named(root: Path, tmp_path: Path, toy: Voice):
    fewer = tmp_path / "model"
    shutil.copytree(root / MEGA, fewer)
    (tmp_path / entry(MEGA).vocoder).symlink_to(root / entry(MEGA).vocoder)
    vocabulary = fewer / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text("utf-8").replace("\nh\n", "\n"), "utf-8")
    model = load_model(MEGA, folder=str(fewer), device="cpu")
    with pytest.raises(TextError, match="'h'"):
        spoken(model, "Hello.", replace(toy, phones=(("^", 0.0, 1.0),)))


def test_with_the_vocoder_of_other_speech_it_says_which_is_needed(root: Path, tmp_path: Path):
    place = tmp_path / "model"
    place.symlink_to(root / MEGA)
    write_vocos(tmp_path / entry(MEGA).vocoder)
    with pytest.raises(CheckpointError, match="natural speech"):
        load_model(MEGA, folder=str(place), device="cpu")
