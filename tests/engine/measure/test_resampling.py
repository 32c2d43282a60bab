from __future__ import annotations

import numpy as np
import pytest

from engine.measure.resampling import resample


@pytest.mark.parametrize(
    ("rate", "target"), [(24000, 16000), (16000, 24000), (44100, 16000), (8000, 16000), (16000, 16000)]
)
def test_a_tone_stays_that_tone(rate: int, target: int) -> None:
    before = np.sin(2 * np.pi * 440 * np.arange(rate) / rate) * np.hanning(rate)
    after = np.sin(2 * np.pi * 440 * np.arange(target) / target) * np.interp(
        np.arange(target) / target, np.arange(rate) / rate, np.hanning(rate)
    )
    converted = resample(before, rate, target)
    assert converted.dtype == np.float32
    np.testing.assert_allclose(converted, after, atol=1e-5)


def test_what_the_target_cannot_hold_is_gone() -> None:
    tone = np.sin(2 * np.pi * 10_000 * np.arange(24000) / 24000) * np.hanning(24000)
    assert np.abs(resample(tone, 24000, 16000)).max() < 1e-4


@pytest.mark.parametrize("length", [1, 2, 3, 1000, 24001])
def test_length(length: int) -> None:
    assert len(resample(np.ones(length), 24000, 16000)) == -(-length * 2 // 3)
