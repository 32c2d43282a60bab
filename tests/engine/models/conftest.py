"""Shared by tests of models."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.files import wav
from paretone.models.base import Voice


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    """Noise as the user's own recording."""
    path = tmp_path_factory.mktemp("voices") / "noise.wav"
    noise = np.random.default_rng(0).standard_normal(40000) * 0.1
    path.write_bytes(wav(noise.astype(np.float32), 24000))
    return Voice("own", "Own", str(path), "What was said.")
