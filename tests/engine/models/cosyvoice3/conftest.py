"""A small release of CosyVoice 3, and the model that it loads as."""

from pathlib import Path

import pytest

from paretone.models.cosyvoice2.adapter import CosySpeech
from paretone.models.cosyvoice3.config import NAME
from tests.engine.models.cosyvoice3.small_release import write_release
from tests.engine.models.official import load, released


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory, NAME, write_release)


@pytest.fixture(scope="module")
def model(folder: Path) -> CosySpeech:
    return load(NAME, folder)
