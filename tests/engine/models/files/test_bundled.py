from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from paretone.errors import CheckpointError
from paretone.models import load_model
from paretone.models.files import bundled
from paretone.models.files.checkpoints import metadata_of
from paretone.paths import resource


def test_every_bundled_weight_file_is_listed_with_its_sha256() -> None:
    root = resource("models")
    there = {path.relative_to(root).as_posix(): path for path in root.rglob("*.safetensors")}
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in there.items()}
    assert bundled.listed() == {name: bundled.original(digest) for name, digest in digests.items()}, (
        "weights have changed: python -m paretone.models.files.bundled"
    )


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another installation of F5 mini, whose files may be damaged."""
    for name in ("f5-mini", "natural-vocoder"):
        shutil.copytree(resource("models", name), tmp_path / name)
    shutil.copy(resource("models", bundled.LIST), tmp_path)
    monkeypatch.setattr(bundled, "root", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name", ["f5-mini/model.safetensors", "natural-vocoder/model.safetensors", "f5-mini/cfg_free/w-0.50.safetensors"]
)
def test_a_bundled_file_that_was_changed_a_little_is_refused(installed: Path, name: str) -> None:
    speech = load_model("f5-mini", folder=str(installed / "f5-mini"), device="cpu")
    assert speech.info.fingerprint == bundled.listed()["f5-mini/model.safetensors"]
    weights = load_file(installed / name)
    largest = max(
        (one for one, value in weights.items() if value.is_floating_point()), key=lambda one: weights[one].numel()
    )
    weights[largest].view(-1)[0] += 0.25
    save_file(weights, installed / name, metadata=metadata_of(installed / name))
    with pytest.raises(CheckpointError, match=f"{name} is not the file that Paretone ships: its SHA-256 begins with"):
        load_model("f5-mini", folder=str(installed / "f5-mini"), device="cpu")


def test_weights_of_ones_own_are_not_compared(tmp_path: Path) -> None:
    bundled.require_shipped(tmp_path / "model.safetensors", "0" * 64)
    bundled.verified_meanwhile([tmp_path])()
