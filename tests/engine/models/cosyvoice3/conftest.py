"""A small release of CosyVoice 3, and the model that it loads as."""

from pathlib import Path

import pytest

from paretone.models.cosyvoice2.adapter import CosySpeech
from paretone.models.cosyvoice3.config import NAME
from tests.engine.models.cosyvoice3.small_release import write_release
from tests.engine.models.official import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(package)
    root = tmp_path_factory.mktemp("models") / NAME
    write_release(root)
    return root


@pytest.fixture(scope="module")
def model(folder: Path) -> CosySpeech:
    return load(NAME, folder)
