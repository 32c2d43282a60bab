"""Shared by tests of models."""

import pytest

from paretone.models.base import Voice
from tests.engine.models.official import write_noise


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    """Noise as the user's own recording."""
    return Voice("own", "Own", str(write_noise(tmp_path_factory.mktemp("voices") / "noise.wav")), "What was said.")
