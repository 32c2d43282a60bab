"""The catalogue of models, and the vocoders that they name."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from paretone.errors import CheckpointError, SettingError
from paretone.models import catalogue, load_model
from paretone.models.base import FLOW
from paretone.models.catalogue import MODELS, CatalogueEntry, entry, voice, voice_problem, voices
from paretone.models.loading import LOADERS, load_vocoder
from paretone.models.minis.natural_vocoder import LatentVocoder, MelReader, MelReaderConfig
from paretone.models.networks.vocos import Vocos
from paretone.models.voices import shipped_names
from paretone.setting.knobs import checked
from paretone.setting.plan import imported
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from tests.engine.small_vocos import write_vocos


@pytest.mark.parametrize("one", catalogue.MODELS, ids=lambda one: one.id)
def test_every_entry_can_be_loaded_and_its_own_defaults_are_allowed(one: CatalogueEntry) -> None:
    assert callable(imported(LOADERS[one.loader]))
    assert checked(one.options, one.options_with(), one.title) == one.options_with()
    if one.family == FLOW:
        assert {"steps", "spacing", "sway", "speed", "cross_fade"} <= {knob.name for knob in one.options}


def test_bundled_models_are_there() -> None:
    assert {one.id for one in catalogue.MODELS if one.bundled} == {"f5-mini", "lm-mini", "megatts3-mini", "omni-mini"}
    assert all(one.available for one in catalogue.MODELS if one.bundled)


def test_a_model_is_available_once_its_weights_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    model = entry("MegaTTS3")
    assert not model.available
    place = model.folder / "diffusion_transformer"
    place.mkdir(parents=True)
    (place / "config.yaml").write_text("win_size: 1200")
    assert not model.available
    (place / "model_only_last.ckpt").write_bytes(b"0")
    assert model.available


def test_shipped_voices_are_for_all_models_that_can_encode_them() -> None:
    for model in ("f5-mini", "E2TTS_Base", "megatts3-mini"):
        assert tuple(one.id for one in voices(model)) == shipped_names()
        assert voice("", model) == voice(voices(model)[0].id, model) == voices(model)[0]
        assert all(one.transcript and one.phones and Path(one.audio).is_file() for one in voices(model))
    with pytest.raises(
        SettingError,
        match=f"no voice named 'nobody'; known voices: {', '.join(shipped_names())}",
    ):
        voice("nobody", "megatts3-mini")


def test_recordings_need_latents_only_where_there_is_no_encoder(tmp_path: Path) -> None:
    audio, model = tmp_path / "mine.wav", tmp_path / "model"
    assert voice_problem(audio, "f5-mini") == voice_problem(audio, "megatts3-mini") == ""
    assert "mine.wav has no latents" in voice_problem(audio, "MegaTTS3", str(model))
    (model / "wavvae").mkdir(parents=True)
    (model / "wavvae" / "model_only_last.ckpt").write_bytes(b"0")
    assert voice_problem(audio, "MegaTTS3", str(model)) == ""
    audio.with_suffix(".npy").write_bytes(b"0")
    assert voice_problem(audio, "MegaTTS3") == ""


@pytest.mark.parametrize(
    ("transcript", "said"),
    [
        ("Guten Tag, wie geht es Ihnen heute Morgen, mein Herr?", "looks like German"),
        ("今天天气很好。", "is in Chinese"),
        ("Привет, как дела?", "is written in Cyrillic script"),
        ("…", "has no words; type the words spoken in it"),
    ],
)
def test_transcripts_that_the_bundled_models_cannot_read_are_told_before(transcript: str, said: str) -> None:
    audio = Path("mine.wav")
    for one in MODELS:
        problem = voice_problem(audio, one.id, transcript=transcript) if not one.released_voices else ""
        assert (f"The transcript of the recording {said}" in problem) == one.bundled
    assert voice_problem(audio, "f5-mini", transcript="We met in Los Angeles.") == ""
    assert voice_problem(audio, "f5-mini", "own", transcript) == "", "a checkpoint that may read it"


SMALL = MelReaderConfig(width=16, inner_width=24, layers=1)


def write_reader(folder: Path) -> None:
    """A mel reader with random weights, as recipes export it."""
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    (folder / "config.json").write_text(json.dumps({"mel_reader": asdict(SMALL)}), encoding="utf-8")
    save_file(MelReader(SMALL).state_dict(), folder / "model.safetensors")


def test_the_folder_decides_which_kind_it_is(tmp_path: Path):
    write_reader(tmp_path / "own")
    write_vocos(tmp_path / "official")
    assert isinstance(load_vocoder(tmp_path / "own"), LatentVocoder)
    assert isinstance(load_vocoder(tmp_path / "official"), Vocos)


def test_a_folder_without_a_vocoder_is_said(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"config\.yaml is missing"):
        load_vocoder(tmp_path)


def test_an_f5_speaks_through_the_vocoder_next_to_it(tmp_path: Path):
    chosen = entry("f5-mini")
    shutil.copytree(chosen.folder, tmp_path / "f5-mini")
    write_reader(tmp_path / chosen.vocoder)
    model = load_model("f5-mini", folder=str(tmp_path / "f5-mini"), device="cpu")
    setting = Setting("f5-mini", chosen.options_with(steps=1))
    take = synthesise(model, "Hello.", voices()[0], setting)
    assert take.sample_rate == 24_000
    assert len(take.samples) > 5_000
    assert np.isfinite(take.samples).all()
