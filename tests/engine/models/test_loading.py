"""Loading a model from a folder in which something is wrong: which file, and what, is always said."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.errors import Cancelled, CheckpointError
from engine.models import load_model
from engine.models.catalogue import entry
from engine.paths import resource

Damage = Callable[[Path], None]
Weights = dict[str, Tensor]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The bundled models, with the vocoder, in a place where they can be damaged."""
    for name in ("f5-mini", entry("f5-mini").vocoder):
        shutil.copytree(resource("models", name), tmp_path / "models" / name)
    return tmp_path / "models" / "f5-mini"


def changed(change: Callable[[Weights], object]) -> Damage:
    """Damage done to the backbone's weights."""

    def damage(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors")

    return damage


def changed_vocoder(change: Callable[[Weights], object]) -> Damage:
    """Damage done to the vocoder's weights."""

    def damage(folder: Path) -> None:
        path = folder.parent / entry("f5-mini").vocoder / "model.safetensors"
        weights = load_file(path)
        change(weights)
        save_file(weights, path)

    return damage


def truncated(name: str) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return damage


def without(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


class MakesFolder:
    """Unpickling an instance without protection would create ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.path),)


def with_code(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        torch.save({"model_state_dict": {"a": MakesFolder(folder / "ran")}}, folder / name)

    return damage


KEY = "ema_model.transformer.proj_out.weight"
VOCODER_KEY = "backbone.embed.weight"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (changed(lambda weights: weights.pop(KEY)), r"model\.safetensors .*1 weight missing: proj_out\.weight"),
        (
            changed(lambda weights: weights.update({KEY: torch.zeros(7, 3)})),
            r"model\.safetensors .*proj_out\.weight is 7 × 3 instead of 100 × ",
        ),
        (
            changed(lambda weights: weights.update({KEY.replace("proj_out", "other"): torch.zeros(1)})),
            r"model\.safetensors .*1 weight unexpected: other\.weight",
        ),
        (changed(lambda weights: weights[KEY].fill_(torch.nan)), r"model\.safetensors .*not numbers in proj_out"),
        (truncated("model.safetensors"), r"model\.safetensors .*download it again"),
        (with_code("model.pt"), r"model\.pt was refused: it holds code \(\S+mkdir\)"),
        (without("model.safetensors"), "holds no checkpoint"),
        (without("vocab.txt"), r"vocab\.txt"),
        (changed_vocoder(lambda weights: weights.pop(VOCODER_KEY)), r"vocoder.*missing: backbone\.embed\.weight"),
        (
            changed_vocoder(lambda weights: weights.update({VOCODER_KEY: torch.zeros(2)})),
            r"vocoder.*backbone\.embed\.weight is 2 instead of",
        ),
        (truncated("../natural-vocoder/model.safetensors"), r"vocoder.*download it again"),
        (without("../natural-vocoder/model.safetensors"), r"vocoder.*model\.safetensors"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(folder: Path, damage: Damage, words: str) -> None:
    damage(folder)
    with pytest.raises(CheckpointError, match=words):
        load_model("f5-mini", folder=str(folder), device="cpu")
    assert not (folder / "ran").exists()


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is not in .*nowhere; download it, or choose the folder"):
        load_model("f5-mini", folder=str(tmp_path / "nowhere"), device="cpu")


def test_a_sound_copy_loads_and_says_what_it_does(folder: Path) -> None:
    said: list[str] = []
    model = load_model("f5-mini", folder=str(folder), device="cpu", status=said.append)
    assert model.info.checkpoint == str(folder / "model.safetensors")
    assert said[0] == "Reading F5 mini …"
    assert said[-1] == "Warming up …"


def test_loading_can_be_cancelled(folder: Path) -> None:
    def cancel() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        load_model("f5-mini", folder=str(folder), device="cpu", check=cancel)
