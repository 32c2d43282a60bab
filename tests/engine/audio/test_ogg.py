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


def test_speech_over_full_scale_is_turned_down_and_not_clipped() -> None:
    time = np.arange(RATE) / RATE
    loud = (2.0 * np.sin(2 * np.pi * 300 * time)).astype(np.float32)
    samples, _ = soundfile.read(io.BytesIO(ogg(loud, RATE, 200_000)))
    inner = samples[RATE // 4 : -RATE // 4]
    assert 0.9 < np.abs(inner).max() < 1.02
    # A tone that was clipped is flat at its tops: much of it lies close to its peak.
    assert np.mean(np.abs(inner) > 0.98 * np.abs(inner).max()) < 0.2
