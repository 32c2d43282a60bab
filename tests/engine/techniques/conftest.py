"""Shared by tests of techniques."""

from collections.abc import Iterator

import pytest

from paretone.models.minis.lm_mini import LmMiniSpeech
from tests.engine.speaking import load, write_all


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LmMiniSpeech]:
    """A small model with all that can be trained of it, and a data folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARETONE_DATA", str(tmp_path_factory.mktemp("own")))
        yield load(write_all(tmp_path_factory.mktemp("views") / "model"))
