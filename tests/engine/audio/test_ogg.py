"""Small Ogg files."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from engine.audio.ogg import ogg
from engine.errors import AudioError

RATE = 24_000


def test_the_best_quality_that_fits_is_taken() -> None:
    noise = np.random.default_rng(0).standard_normal(3 * RATE).astype(np.float32)
    large, small = (ogg(0.5 * noise, RATE, most) for most in (200_000, 30_000))
    assert len(small) <= 30_000 < len(large)
    for content in (large, small):
        samples, rate = soundfile.read(io.BytesIO(content))
        assert rate == RATE and len(samples) == 3 * RATE and np.abs(samples).max() <= 1.5
    with pytest.raises(AudioError, match="choose a shorter text"):
        ogg(noise, RATE, 1_000)
