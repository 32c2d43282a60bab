"""Releases in their folders: read, refused, and set; recordings of nobody."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretone.errors import CheckpointError
from paretone.files import wav
from paretone.models import catalogue, load_model
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique


def released(folders: pytest.TempPathFactory, model: str, write: Callable[[Path], object]) -> Path:
    for package in ("onnx", "onnxruntime", "tokenizers"):  # What reads it.
        pytest.importorskip(package)
    write(folder := folders.mktemp("models") / model)
    return folder


def load(model: str, folder: Path) -> Any:
    return load_model(model, folder=str(folder), device="cpu")


def refused(model: str, folder: Path, pattern: str = "") -> str:
    """Why a release is not loaded, which matches ``pattern``."""
    with pytest.raises(CheckpointError, match=pattern) as error:
        load(model, folder)
    return str(error.value)


def setting(model: str, *techniques: UsedTechnique, seed: int = 3, **options: object) -> Setting:
    ordered = tuple(sorted(techniques, key=lambda one: one.technique))
    return Setting(model, catalogue.entry(model).options_with(**options), ordered, seed=seed)


def used(name: str, **knobs: object) -> UsedTechnique:
    return UsedTechnique(name, Values(knobs))


def write_noise(path: Path, seconds: float = 5 / 3, rate: int = 24000, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).standard_normal(round(seconds * rate)) * 0.1
    path.write_bytes(wav(noise.astype(np.float32), rate))
    return path
