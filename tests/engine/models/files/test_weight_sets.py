"""CFG-free weights are recognised by their metadata, and only those of the model that is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from paretone.errors import Cancelled
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import find_weight_sets, trained_guidance, weight_set_folders
from tests.engine.small_speech import FINGERPRINT, save_cfg_free


def test_sets_are_found_by_weight_and_only_those_of_the_base(tmp_path: Path) -> None:
    own, bundled = tmp_path / "own", tmp_path / "bundled"
    own.mkdir()
    bundled.mkdir()
    save_cfg_free(own / "a.safetensors", 2 / 3)
    save_cfg_free(bundled / "z.safetensors", 0.5)
    save_cfg_free(bundled / "other.safetensors", 0.5, base="f" * 64)
    found = find_weight_sets([bundled, own, tmp_path / "missing"], FINGERPRINT)
    assert [round(one.weight, 3) for one in found] == [0.5, 0.667]
    assert [Path(one.path).name for one in found] == ["z.safetensors", "a.safetensors"]
    assert found[0].fingerprint == fingerprint(bundled / "z.safetensors")
    assert found[0].method == "model-guidance"
    assert [one.equivalent_guidance for one in found] == pytest.approx([1.0, 2.0], abs=1e-4)


def test_searching_can_be_cancelled(tmp_path: Path) -> None:
    save_cfg_free(tmp_path / "a.safetensors", 0.5)

    def check() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        find_weight_sets([tmp_path], FINGERPRINT, check)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {"cfg_free": "false", "weight": "0.5"},
        {"cfg_free": "true"},
        {"cfg_free": "true", "weight": "much"},
        {"cfg_free": "true", "weight": "nan"},
        {"cfg_free": "true", "weight": "1"},
    ],
)
def test_what_does_not_say_so_is_no_cfg_free_checkpoint(tmp_path: Path, metadata: dict | None) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"x": torch.zeros(1)}, path, metadata)
    assert trained_guidance(path) is None


def test_files_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    (tmp_path / "broken.safetensors").write_bytes(b"nothing")
    (tmp_path / "model.pt").write_bytes(b"nothing")
    assert find_weight_sets([tmp_path], FINGERPRINT) == ()
    assert trained_guidance(tmp_path / "model.pt") is None


def test_they_are_next_to_the_checkpoint_or_in_the_users_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "data"))
    near, own = weight_set_folders("f5-mini", tmp_path / "f5-mini" / "model.safetensors")
    assert near == tmp_path / "f5-mini" / "cfg_free"
    assert own.parts[-3:] == ("models", "f5-mini", "cfg_free")
