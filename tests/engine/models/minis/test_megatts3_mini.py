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
from paretone.front_end.reading import NaturalReader
from paretone.models import load_model
from paretone.models.base import SpeechModel, Voice
from paretone.models.catalogue import entry
from paretone.models.minis.megatts3_mini import phones_of_frames
from paretone.models.minis.natural_vocoder import GROUP_HOP, MelReader, MelReaderConfig
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from paretone.training.recipes.natural_megatts3 import ARCHITECTURE, NaturalMega, NaturalMegaOptions
from tests.engine.awake import awake
from tests.engine.small_vocos import write_vocos
from tests.engine.training.toy_natural import toy_natural_corpus


def test_frames_get_the_phone_at_their_middle_counted_from_one():
    phones = [("s", 0.0, 0.2), ("ˈi", 0.2, 0.5), (EDGE, 0.5, 0.55)]
    places = phones_of_frames(phones, 8, rate=100, hop=10)
    assert places.tolist() == [1, 1, 2, 2, 2, 3, 3, 3]  # The sixth frame's middle is the silence's end.
    assert places.dtype == np.int64


MODEL = entry("megatts3-mini")
SMALL = replace(
    ARCHITECTURE,
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
SETTING = Setting(MODEL.id, MODEL.options_with(steps=1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as the recipe exports it, with a vocoder next to it."""
    root = tmp_path_factory.mktemp("natural")
    run = NaturalMega(toy_natural_corpus(), torch.device("cpu"), NaturalMegaOptions(), SMALL)
    awake(run.average.module)
    run.export(root / "model")
    vocoder = root / MODEL.vocoder
    vocoder.mkdir()
    (vocoder / "config.json").write_text(json.dumps({"mel_reader": asdict(READER)}), encoding="utf-8")
    save_file(MelReader(READER).state_dict(), vocoder / "model.safetensors")
    return root / "model"


@pytest.fixture(scope="module")
def model(folder: Path) -> SpeechModel:
    return load_model(MODEL.id, folder=str(folder), device="cpu")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A second of a tone that comes and goes."""
    times = np.arange(24_000) / 24_000
    path = tmp_path / "voice.wav"
    soundfile.write(path, 0.2 * np.sin(2 * np.pi * 200 * times) * np.sin(np.pi * times), 24_000)
    return path


def spoken(model: SpeechModel, text: str, voice: Voice, seed: int = 0) -> np.ndarray:
    setting = replace(SETTING, seed=seed)
    return synthesise(model, text, voice, setting).samples


def test_text_lasts_as_long_as_natural_speech(model: SpeechModel, recording: Path):
    text = "Is it 5:30 already?"
    voice = Voice("toy", "Toy", str(recording), "Hello.", (("^", 0.0, 0.4), ("h", 0.4, 1.0)))
    samples = spoken(model, text, voice)
    (piece,), _ = NaturalReader().pieces(text, seed=SETTING.seed)
    assert len(samples) == pytest.approx(piece.seconds * 24_000, abs=2 * GROUP_HOP)
    assert np.isfinite(samples).all()


def test_the_pace_is_drawn_from_the_seed(model: SpeechModel, recording: Path):
    voice = Voice("toy", "Toy", str(recording), "Hello.", (("^", 0.0, 0.4), ("h", 0.4, 1.0)))
    takes = [spoken(model, "Good morning.", voice, seed) for seed in (3, 3, 4, 5)]
    assert np.array_equal(takes[0], takes[1])
    assert len({len(one) for one in takes}) > 1


def test_the_phones_of_an_own_recording_are_found_in_it(model: SpeechModel, recording: Path):
    assert len(spoken(model, "Good morning.", Voice("own", "Own", str(recording), "Hello there."))) > 10_000


def test_a_voice_with_phones_of_another_alphabet_is_aligned_by_its_transcript(model: SpeechModel, recording: Path):
    voice = Voice("toy", "Toy", str(recording), "Hello.", (("hh", 0.0, 1.0),))
    own = replace(voice, phones=())
    assert np.array_equal(spoken(model, "Hello.", voice), spoken(model, "Hello.", own))


def test_a_phone_that_the_model_does_not_have_is_named(folder: Path, tmp_path: Path, recording: Path):
    fewer = tmp_path / "model"
    shutil.copytree(folder, fewer)
    (tmp_path / MODEL.vocoder).symlink_to(folder.parent / MODEL.vocoder)
    vocabulary = fewer / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text("utf-8").replace("\nh\n", "\n"), "utf-8")
    model = load_model(MODEL.id, folder=str(fewer), device="cpu")
    with pytest.raises(TextError, match="'h'"):
        spoken(model, "Hello.", Voice("toy", "Toy", str(recording), "Hello.", (("^", 0.0, 1.0),)))


def test_with_the_vocoder_of_other_speech_it_says_which_is_needed(folder: Path, tmp_path: Path):
    place = tmp_path / "model"
    place.symlink_to(folder)
    write_vocos(tmp_path / MODEL.vocoder)
    with pytest.raises(CheckpointError, match="natural speech"):
        load_model(MODEL.id, folder=str(place), device="cpu")
