"""CFG-free weights in the official layout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from paretone import cli
from paretone.errors import CheckpointError
from paretone.export.delivery import deliver
from paretone.models import load_model
from paretone.models.catalogue import voices
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from paretone.techniques.guidance_free.exported_weights import GuidanceFreeWeights, cfg_free_metadata
from tests.engine.export.test_f5_tts import MODEL, WEIGHTS, profile

METADATA = {
    "cfg_free": "true",
    "weight": "0.5",
    "equivalent_guidance": "1",
    "method": "distillation",
    "base": "0" * 64,
    "steps": "120",
}


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """The bundled weights, said to be CFG-free."""
    path = tmp_path / "w-0.50.safetensors"
    save_file(load_file(WEIGHTS), path, METADATA)
    return path


def test_weights_are_official_and_say_what_they_are(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    weights = GuidanceFreeWeights.read(trained, read_f5_checkpoint(MODEL.folder))
    written = deliver(out, weights.contents(), lambda done, total: None)
    companions = [one for one in ("model.yaml", "vocab.txt") if (MODEL.folder / one).is_file()]
    assert [path.name for path in written] == ["model_cfg_free_w0.50.safetensors", *companions]
    with safe_open(written[0], framework="pt") as file:
        assert file.metadata() == METADATA
    again = deliver(tmp_path / "again", weights.contents(), lambda done, total: None)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written], "the same to the byte"
    assert deliver(out, weights.contents(), lambda done, total: None) == written
    before, after = load_file(WEIGHTS), load_file(written[0])
    assert after.pop("step").item() == 120
    del before["step"]
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)

    loaded = load_model("f5-mini", folder=str(out))
    assert loaded.info.trained_guidance == 0.5, "what is exported is a model of its own"
    guided = Setting("f5-mini", MODEL.options_with(steps=2, guidance=2.0))
    spoken = synthesise(loaded, "Rice.", voices()[0], guided)
    assert any("more on top would be too much" in note for note in spoken.notes)


def test_plain_weights_are_no_cfg_free_ones() -> None:
    assert cfg_free_metadata(WEIGHTS) is None
    with pytest.raises(CheckpointError, match="not CFG-free by its metadata"):
        GuidanceFreeWeights.read(WEIGHTS, read_f5_checkpoint(MODEL.folder))


def test_incomplete_metadata_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({"x": torch.zeros(1)}, path, {"cfg_free": "true", "weight": "0.5"})
    with pytest.raises(CheckpointError, match="lacks 'equivalent_guidance'"):
        cfg_free_metadata(path)


def test_weights_of_another_architecture_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file({"ema_model.transformer.proj_out.bias": torch.zeros(3)}, path, METADATA)
    with pytest.raises(CheckpointError, match=str(path)):
        GuidanceFreeWeights.read(path, read_f5_checkpoint(MODEL.folder))


def test_profile_with_guidance_has_none_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile(skips=False).save(tmp_path / "p.json")
    arguments = ["--profile", str(tmp_path / "p.json"), "--out", str(tmp_path / "out")]
    assert cli.main(["export", "--target", "safetensors", *arguments]) == 6
    assert "no CFG-free weights to write" in capsys.readouterr().err
