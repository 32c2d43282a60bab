from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from paretone.errors import CheckpointError
from paretone.models import load_model
from paretone.models.catalogue import entry, voices
from paretone.models.minis.natural.mel_reader import MelReader, MelReaderConfig
from paretone.models.minis.natural.vocoder import LatentVocoder
from paretone.models.networks.vocos import Vocos
from paretone.models.vocoders import load_vocoder
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from tests.engine.small_vocos import write_vocos

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
