from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.front_end.frame_phones import labels
from paretone.front_end.natural.phones import PHONES
from paretone.front_end.natural.reading import NaturalReader
from paretone.front_end.phones import PhoneVocabulary
from paretone.models import load_model
from paretone.models.base import SpeechModel, Voice
from paretone.models.catalogue import entry
from paretone.models.f5.checkpoint import NATURAL_PHONES
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from paretone.training.recipes.natural_f5 import ARCHITECTURE, NaturalF5, NaturalF5Options
from tests.engine.awake import awake
from tests.engine.training.toy_natural import toy_natural_corpus

SMALL = replace(ARCHITECTURE, dim=64, depth=1, heads=1, dim_head=64, text_dim=32, conv_layers=1)
SETTING = Setting("f5-mini", entry("f5-mini").options_with(steps=1))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SpeechModel:
    """A model as the recipe exports it."""
    folder = tmp_path_factory.mktemp("natural")
    run = NaturalF5(toy_natural_corpus(), torch.device("cpu"), NaturalF5Options(), SMALL)
    awake(run.average.module)
    run.export(folder)
    return load_model("f5-mini", folder=str(folder), device="cpu")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A second of a tone that comes and goes."""
    times = np.arange(24_000) / 24_000
    path = tmp_path / "voice.wav"
    soundfile.write(path, 0.2 * np.sin(2 * np.pi * 200 * times) * np.sin(np.pi * times), 24_000)
    return path


def test_text_is_read_as_the_phones_of_natural_speech(model: SpeechModel, recording: Path):
    assert model.info.text_front_end == NATURAL_PHONES
    text = "Is it 5:30 already?"
    voice = Voice("toy", "Toy", str(recording), "Hello.", (("^", 0.0, 0.4), ("h", 0.4, 1.0)))
    take = synthesise(model, text, voice, SETTING)
    (piece,), _ = NaturalReader().pieces(text, seed=SETTING.seed)
    assert len(take.samples) == pytest.approx(piece.seconds * 24_000, abs=512)
    ids = labels(piece.phones, piece.mel_frames, PhoneVocabulary(PHONES))
    assert len(set(ids.tolist())) > 8


def test_the_phones_of_an_own_recording_are_found_in_it(model: SpeechModel, recording: Path):
    voice = Voice("own", "Own", str(recording), "Hello there.")
    take = synthesise(model, "Good morning.", voice, SETTING)
    assert np.isfinite(take.samples).all()
    assert len(take.samples) > 10_000


def test_the_pace_is_drawn_from_the_seed(model: SpeechModel, recording: Path):
    voice = Voice("toy", "Toy", str(recording), "Hello.", (("^", 0.0, 0.4), ("h", 0.4, 1.0)))
    takes = [synthesise(model, "Good morning.", voice, replace(SETTING, seed=seed)) for seed in (3, 3, 4, 5)]
    assert np.array_equal(takes[0].samples, takes[1].samples)
    assert len({len(one.samples) for one in takes}) > 1
